// Calls exported functions of a module with given arguments and reports every difference from what is wanted.
// node run_cases.mjs MODULE CASES: both are files; prints JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [file, cases] = process.argv.slice(2);
const revive = (_, x) => (x && typeof x === "object" && "$number" in x ? Number(x.$number) : x);
const module = await import(pathToFileURL(file).href);

function differs(got, want, tolerance, at = "") {
  if (want === null || typeof want !== "object") {
    if (typeof want === "number" && typeof got === "number") {
      if (Number.isNaN(want) ? Number.isNaN(got) : Math.abs(got - want) <= tolerance * Math.max(1, Math.abs(want)) || got === want) return null;
    } else if (got === want) return null;
    return `${at || "result"}: ${got} instead of ${want}`;
  }
  if (got === null || typeof got !== "object") return `${at || "result"}: ${got} instead of ${JSON.stringify(want)}`;
  const keys = Object.keys(want);
  if (Array.isArray(want) && got.length !== want.length) return `${at}: ${got.length} entries instead of ${want.length}`;
  for (const key of keys) {
    const found = differs(got[key], want[key], tolerance, `${at}[${key}]`);
    if (found) return found;
  }
  return null;
}

const wrong = [], { tolerance, list } = JSON.parse(readFileSync(cases, "utf8"), revive);
for (const { call, arguments: values, want } of list) {
  let found;
  try { found = differs(await module[call](...values), want, tolerance); } catch (error) { found = String(error); }
  if (found) wrong.push(`${call}: ${found}`);
}
console.log(JSON.stringify({ run: list.length, wrong }));
