"""Properties of positions; the formulas, written out as loops over plain numbers, are the judge."""

import math

import torch

from properties import Case, close, gradients, raises, states


def _angle(t: int, pair: int, d: int) -> float:
    return t / 10000 ** (2 * pair / d)


@states("sinusoidal_positions")
def sinusoids_are_the_double_loop_of_the_paper(sinusoidal_positions, case: Case):
    for T, d in ((case.T, case.D), (case.T, 2 * case.H), (200, 7), (case.T, 1), (case.T, 2)):
        expected = torch.zeros(T, d)
        for t in range(T):
            for column in range(d):
                wave = math.cos if column % 2 else math.sin
                expected[t, column] = wave(_angle(t, column // 2, d))
        close(sinusoidal_positions(T, d), expected, 1e-6)


@states("sinusoidal_positions")
def sinusoids_do_not_depend_on_the_length(sinusoidal_positions, case: Case):
    longer = sinusoidal_positions(case.T + 5, case.H)
    assert torch.equal(longer[: case.T], sinusoidal_positions(case.T, case.H))
    assert sinusoidal_positions(0, case.H).shape == (0, case.H)


@states("sinusoidal_positions")
def sinusoids_are_points_on_circles(sinusoidal_positions, case: Case):
    pairs = sinusoidal_positions(50 * case.T, 2 * case.H).unflatten(-1, (-1, 2))
    close(pairs.norm(dim=-1), torch.ones(50 * case.T, case.H), 1e-6)


@states("sinusoidal_positions")
def sinusoids_are_as_near_as_their_distance(sinusoidal_positions, case: Case):
    d, T = 2 * case.H, case.T + 20
    products = sinusoidal_positions(T, d) @ sinusoidal_positions(T, d).T
    for t in range(T):
        close(products[t, : t + 1], products[0, : t + 1].flip(0), 1e-4)


@states("sinusoidal_positions")
def sinusoids_name_bad_sizes(sinusoidal_positions, case: Case):
    raises(lambda: sinusoidal_positions(-1, case.D), "T, d: got -1 and ")
    raises(lambda: sinusoidal_positions(case.T, 0), f"T, d: got {case.T} and 0")


def _rope_inputs(case: Case, *batch: int):
    return case.random()(*batch, case.T, 2 * case.D)


@states("apply_rope")
def rope_turns_each_pair_by_its_angle(apply_rope, case: Case):
    for start in (0, 3):
        x = _rope_inputs(case)
        d, turned = x.shape[-1], apply_rope(x, start)
        for t in range(case.T):
            for pair in range(case.D):
                a, b = x[t, 2 * pair].item(), x[t, 2 * pair + 1].item()
                c, s = math.cos(_angle(start + t, pair, d)), math.sin(_angle(start + t, pair, d))
                assert math.isclose(turned[t, 2 * pair], a * c - b * s, abs_tol=1e-9)
                assert math.isclose(turned[t, 2 * pair + 1], a * s + b * c, abs_tol=1e-9)


@states("apply_rope")
def rope_takes_any_batch_and_keeps_the_type(apply_rope, case: Case):
    x = _rope_inputs(case, case.B, 2)
    turned = apply_rope(x)
    for i in range(case.B):
        for j in range(2):
            assert torch.equal(turned[i, j], apply_rope(x[i, j]))
    assert torch.equal(turned[..., 0, :], x[..., 0, :]), "position 0 stays"
    close(apply_rope(x.float()), turned.float(), 1e-5)


@states("apply_rope")
def rope_keeps_lengths(apply_rope, case: Case):
    x = _rope_inputs(case, case.B)
    close(apply_rope(x, 1000).norm(dim=-1), x.norm(dim=-1))


@states("apply_rope")
def rope_scores_depend_on_the_distance_only(apply_rope, case: Case):
    r = case.random()
    q, k = (r(1, 2 * case.D).expand(case.T, -1) for _ in range(2))
    here = apply_rope(q) @ apply_rope(k).T
    close(apply_rope(q, 977) @ apply_rope(k, 977).T, here)
    for t in range(case.T - 1):
        close(here[t + 1, 1:], here[t, :-1])


@states("apply_rope")
def rope_goes_on_where_it_stopped(apply_rope, case: Case):
    x = _rope_inputs(case, case.B)
    for cut in range(case.T + 1):
        pieces = [apply_rope(x[:, :cut]), apply_rope(x[:, cut:], cut)]
        assert torch.equal(torch.cat(pieces, dim=1), apply_rope(x))


@states("apply_rope")
def rope_passes_gradients_back_by_the_opposite_turn(apply_rope, case: Case):
    x, direction = _rope_inputs(case, 2).requires_grad_(), _rope_inputs(Case(T=case.T, D=case.D, seed=case.seed + 9), 2)
    (slope,) = gradients(apply_rope(x), [x], direction)
    close(apply_rope(slope), direction)


@states("apply_rope")
def rope_names_an_odd_number_of_features(apply_rope, case: Case):
    d = 2 * case.D + 1
    raises(lambda: apply_rope(case.random()(case.T, d)), f"x: got {d} features")


@states("alibi_bias")
def alibi_is_a_slope_for_each_head_times_the_distance(alibi_bias, case: Case):
    for n_heads in (1, 2, case.H, 8):
        expected = torch.zeros(n_heads, case.T, case.T)
        for head in range(n_heads):
            for i in range(case.T):
                for j in range(case.T):
                    expected[head, i, j] = -abs(i - j) / 2 ** (8 * (head + 1) / n_heads)
        bias = alibi_bias(n_heads, case.T)
        close(bias, expected, 1e-6)
        assert torch.equal(bias, bias.transpose(1, 2))


@states("LearnedPositions")
def learned_positions_are_rows_of_a_trained_table(LearnedPositions, case: Case):
    positions = LearnedPositions(case.T + 3, case.D)
    assert [p.shape for p in positions.parameters()] == [(case.T + 3, case.D)]
    x = case.random()(case.B, case.T, case.D).float()
    for start in range(4):
        for i in range(case.B):
            for t in range(case.T):
                close(positions(x, start)[i, t], x[i, t] + positions.table[start + t])
    assert torch.equal(positions(x), positions(x, 0))


@states("LearnedPositions")
def learned_positions_start_small_and_all_different(LearnedPositions, case: Case):
    table = LearnedPositions(400, case.D).table.detach()
    assert 0.01 < table.std() < 0.04
    assert len(table.unique(dim=0)) == 400


@states("LearnedPositions")
def learned_positions_end_at_max_len(LearnedPositions, case: Case):
    positions, x = LearnedPositions(case.T, case.D), torch.zeros(case.B, case.T, case.D)
    message = f"x: got positions up to {case.T + 1}, but only {case.T} were learned"
    raises(lambda: positions(x, 1), message)
    raises(lambda: positions(torch.zeros(case.B, case.T + 1, case.D)), message)


@states("TokenEmbedding")
def token_vectors_are_scaled_and_placed(TokenEmbedding, case: Case):
    d, idx = 2 * case.D + 1, case.integers(case.H, case.B, case.T)
    embed = TokenEmbedding(case.H, d, max_len=case.T)
    x = embed(idx)
    for i in range(case.B):
        for t in range(case.T):
            waves = [(math.sin, math.cos)[c % 2](_angle(t, c // 2, d)) for c in range(d)]
            close(x[i, t], embed.emb.weight[idx[i, t]] * math.sqrt(d) + torch.tensor(waves), 1e-5)


@states("TokenEmbedding")
def token_positions_are_a_buffer(TokenEmbedding, case: Case):
    embed = TokenEmbedding(case.H, case.D)
    assert [name for name, _ in embed.named_parameters()] == ["emb.weight"]
    assert list(embed.state_dict()) == ["emb.weight"], "computed, so not saved"
    assert embed.positions.shape == (64, case.D)
    moved = embed.to("meta")
    assert moved.positions.device.type == "meta"
    assert moved(torch.zeros(case.B, case.T, dtype=torch.long, device="meta")).shape == (case.B, case.T, case.D)


@states("TokenEmbedding")
def token_positions_end_at_max_len(TokenEmbedding, case: Case):
    embed = TokenEmbedding(case.H, case.D, max_len=case.T)
    too_many = torch.zeros(case.B, case.T + 1, dtype=torch.long)
    raises(lambda: embed(too_many), f"idx: got {case.T + 1} tokens, but max_len is {case.T}")
