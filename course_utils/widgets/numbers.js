// Softmax, products, attention and masks: pure functions, compared with torch in float64 by tests/widgets.
// Matrices are flat arrays, row by row.

// Softmax of one row. Nothing but -Infinity gives NaN, as in torch.
export function softmax(row) {
  let top = -Infinity;
  for (const x of row) top = Math.max(top, x);
  const out = Float64Array.from(row, (x) => Math.exp(x - top));
  const sum = out.reduce((a, b) => a + b, 0);
  return out.map((x) => x / sum);
}

// (n, k) times (k, m), row by row in one flat array each. Zeros are not skipped: 0 * NaN is NaN.
export function matmul(a, b, n, k, m) {
  const out = new Float64Array(n * m);
  for (let i = 0; i < n; i++)
    for (let c = 0; c < k; c++) for (let j = 0, x = a[i * k + c]; j < m; j++) out[i * m + j] += x * b[c * m + j];
  return out;
}

export function transpose(a, n, m) {
  return Float64Array.from({ length: n * m }, (_, t) => a[(t % n) * m + Math.floor(t / n)]);
}

// Scaled dot-product attention. q (n, d), k (m, d), v (m, dv); mask (n, m) with 1 = may attend, or null.
// A row that may attend to nothing gets zeros, the course's convention; with plain = true NaN, as a bare softmax.
export function attention(q, k, v, mask, n, m, d, dv, plain = false) {
  const scores = matmul(q, transpose(k, m, d), n, d, m).map((x) => x / Math.sqrt(d));
  const weights = new Float64Array(n * m);
  for (let i = 0; i < n; i++) {
    const row = scores.slice(i * m, i * m + m).map((x, j) => (!mask || mask[i * m + j] ? x : -Infinity));
    if (plain || row.some((x) => x !== -Infinity)) weights.set(softmax(row), i * m);
  }
  return { scores, weights, out: matmul(weights, v, n, m, dv) };
}

// Masks of the course, 1 = may attend: row = query, column = key.
export const causalMask = (n) => windowMask(n, n);
export const windowMask = (n, w) =>
  Uint8Array.from({ length: n * n }, (_, t) => +(t % n <= Math.floor(t / n) && Math.floor(t / n) - (t % n) < w));
export const keyMask = (n, real) => Uint8Array.from({ length: n * real.length }, (_, t) => +real[t % real.length]);
