"""The committed measurements: complete, and what the lessons claim holds in them on every seed."""

import json
from itertools import pairwise

import pytest

from course_utils import measured
from course_utils.experiments import half_length, steps_to
from course_utils.measured import make

TABLES = sorted(path.stem for path in measured.FOLDER.glob("*.json"))


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"^name: there are no measurements 'scorebord'; there are: .*scoreboard"):
        measured.load("scorebord")


@pytest.mark.parametrize("name", ["../scoreboard", "make.py", ""])
def test_a_name_is_not_a_path(name):
    with pytest.raises(ValueError, match=r"^name: there are no measurements"):
        measured.load(name)


def test_spread_shows_one_number_or_the_range():
    assert measured.spread([0.981, 0.979, 0.98]) == "0.98"
    assert measured.spread([0.99, 0.91, 0.95]) == "0.91 … 0.99"
    assert measured.spread([3, 1, 2], digits=0) == "1 … 3"


@pytest.mark.parametrize("name", TABLES)
def test_every_table_says_how_it_was_made(name):
    table = measured.load(name)
    assert table["made_by"] == f"python -m course_utils.measured.make {name}"
    assert table["what"] == make.TABLES[name].__doc__
    assert table["torch"]


def shares(value):
    """All numbers below a part of a table."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [share for part in value for share in shares(part)]
    return [value]


LINES = {line["name"]: line for line in measured.load("scoreboard")["lines"]}


def test_the_scoreboard_is_complete():
    seeds = len(make.SEEDS)
    for line in LINES.values():
        assert line["steps"] == LINES["additive attention"]["steps"], "the same steps for every model"
        for scores in (line["exact_match"], line["token_accuracy"]):
            assert len(scores) == seeds and all(len(run) == 8 for run in scores)
            assert all(0 <= share <= 1 for share in shares(scores))


def test_attention_translates_every_length_it_was_trained_on():
    line = LINES["additive attention"]
    assert all(min(run[:6]) >= 0.95 for run in line["exact_match"])
    assert all(alignment >= 0.9 for alignment in line["alignment"])


def test_attention_falls_beyond_the_lengths_it_was_trained_on():
    assert all(run[7] < run[5] / 2 for run in LINES["additive attention"]["exact_match"])


def test_one_fixed_vector_is_enough_for_one_date_and_falls_with_length():
    line = LINES["fixed context vector"]
    for exact, token in zip(line["exact_match"], line["token_accuracy"], strict=True):
        assert exact[0] >= 0.95 and max(exact[2:]) <= 0.05
        assert token == sorted(token, reverse=True)


def test_a_wider_vector_holds_longer_sequences():
    halves = [
        [half_length(dict(enumerate(run, start=1))) for run in runs]
        for runs in measured.load("copy_capacity")["exact_match"].values()
    ]
    assert all(max(narrow) < min(wide) for narrow, wide in pairwise(halves))


@pytest.mark.skipif("recall" not in TABLES, reason="not measured yet")
def test_recall_is_lost_with_distance_by_recurrence_and_kept_by_attention():
    table = measured.load("recall")
    for name, runs in table["accuracy"].items():
        for run in runs:
            assert len(run) == len(table["distances"])
            if name in ("attention", "dilated CNN"):
                assert min(run) >= 0.95
            else:
                assert run[0] >= 0.95 and run[-1] < 0.25


@pytest.mark.skipif("scale" not in TABLES, reason="not measured yet")
def test_scaling_saves_the_gradient_at_every_width():
    table = measured.load("scale")
    for d in (16, 64, 256):
        slow = [steps or float("inf") for steps in table["steps_to_90"][f"{d} not scaled"]]
        assert max(table["steps_to_90"][f"{d} scaled"]) < min(slow)
    dead = [min(table["dead_share"][f"{d} not scaled"]) for d in (16, 64, 256, 1024)]
    assert dead == sorted(dead) and dead[-1] > 0.5
    assert max(shares([table["dead_share"][f"{d} scaled"] for d in (16, 64, 256, 1024)])) < 0.01


def test_the_tables_of_images_are_complete():
    sizes, shuffles, patches, maps = (
        measured.load(f"image_{name}") for name in ("sizes", "shuffles", "patches", "maps")
    )
    seeds = len(make.images.SEEDS)
    for name in ("ViT", "CNN", "MLP"):
        assert list(sizes["accuracy"][name]) == [str(n) for n in sizes["sizes"]]
        assert 100_000 < sizes["parameters"][name] < 110_000, "about the same number of parameters"
        for runs in [*sizes["accuracy"][name].values(), *(row[name] for row in shuffles["accuracy"].values())]:
            assert len(runs) == seeds and all(0.1 < share <= 1 for share in runs)
    assert list(patches["accuracy"]) == ["1", "2", "4", "8"]
    for part in ("accuracy", "without_positions", "baselines"):
        assert all(len(runs) == seeds for runs in patches[part].values())
    for part in ("four_highest", "six_lowest"):
        assert {name: len(runs) for name, runs in maps[part].items()} == dict.fromkeys(
            ("raw attention", "rollout", "ink", "chance"), len(make.images.MAP_SEEDS)
        )


def test_a_new_table_is_written_with_its_origin(tmp_path, monkeypatch, capsys):
    def tiny() -> dict:
        """One number."""
        return {"number": steps_to([1.0] * 10)}

    monkeypatch.setattr(make, "TABLES", {"tiny": tiny})
    monkeypatch.setattr(make, "FOLDER", tmp_path)
    monkeypatch.setattr(make.torch, "set_num_threads", lambda n: None)
    monkeypatch.setattr(make.torch, "set_flush_denormal", lambda on: None)
    assert make.main(["tiny"]) == 0
    table = json.loads((tmp_path / "tiny.json").read_text(encoding="utf-8"))
    assert table["made_by"] == "python -m course_utils.measured.make tiny"
    assert table["what"] == "One number." and table["number"] == 10
    assert make.main(["tyni"]) == 2 and "unknown: tyni; there are: tiny" in capsys.readouterr().out


DEPTH = measured.load("depth")


def nats_at(name):
    return [run["nats"] for run in DEPTH["runs"][name]]


def test_pre_norm_trains_at_every_depth_and_post_norm_breaks_with_depth():
    unigram = DEPTH["unigram"][0]
    assert all(len(runs) == len(make.SEEDS) for runs in DEPTH["runs"].values())
    for n_blocks in (4, 6, 12, 24):
        assert max(nats_at(f"{n_blocks} pre-norm")) < unigram - 0.3
    assert max(nats_at("4 post-norm")) < unigram - 0.3
    assert max(nats_at("6 post-norm, warm-up")) < unigram - 0.3
    for stuck in ("6 post-norm", "12 post-norm", "12 post-norm, warm-up", "24 post-norm", "24 post-norm, warm-up"):
        assert min(nats_at(stuck)) > unigram - 0.15, stuck


def test_each_way_of_leaving_something_out_fails_in_its_own_way():
    for n_blocks in (6, 12, 24):
        silent = DEPTH["runs"][f"{n_blocks} neither"]
        assert all(run["likeness"][1] > 0.99 for run in silent)
        alike = DEPTH["runs"][f"{n_blocks} no residual"]
        assert all(run["likeness"][1] > 0.95 and run["gradients"][0] > 0.1 for run in alike)
        assert min(run["nats"] for run in silent + alike) > DEPTH["unigram"][0] - 0.15
    assert all(run["gradients"][0] < 1e-3 for run in DEPTH["runs"]["12 neither"])
    assert all(run["first_loss"] > 20 for run in DEPTH["runs"]["12 no norm"])


def test_the_feed_forward_network_is_worth_its_place():
    nats = measured.load("blocks")["nats"]
    assert max(nats["ReLU, 4 times"]) < min(nats["ReLU, 2 times"])
    assert max(nats["ReLU, 4 times"]) < min(nats["linear, 4 times as wide"])
    assert max(nats["linear, 4 times as wide"]) < min(nats["no feed-forward network"])


def test_the_auxiliary_loss_evens_the_load_of_experts_out():
    load = measured.load("blocks")["load"]

    def worst(name):
        return max(max(layer) / max(min(layer), 1e-9) for run in load[name] for layer in run)

    assert worst("four experts") < worst("four experts, load left alone")


def test_larger_models_are_better_on_every_seed():
    nats = measured.load("sizes")["nats"]
    for steps in (600, 1800):
        for small, large in pairwise((8, 16, 32, 64)):
            assert max(nats[f"{large} wide, {steps} steps"]) < min(nats[f"{small} wide, {steps} steps"])
    assert all(max(nats[f"64 wide, {steps} steps"]) < 1.72 for steps in (600, 1800)), "better than counting triples"


def test_the_transformer_keeps_up_with_attention_within_the_trained_lengths():
    line = LINES["Transformer"]
    assert all(min(run[:4]) >= 0.9 for run in line["exact_match"])
    assert all(run[7] < 0.1 for run in line["exact_match"])
    assert min(line["alignment"]) >= 0.9
    assert 0.7 < line["parameters"] / LINES["additive attention"]["parameters"] < 1.4
