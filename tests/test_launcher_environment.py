"""The environment that course.py makes: when it is rebuilt, when updated, and what a failure says."""

import subprocess
import sys
from pathlib import Path

import pytest

from course_utils import environment
from course_utils.environment import advice, checkup, folders, packages, state
from course_utils.environment.state import Stop, judge, read_record, record_file, venv_python, write_record

PYPROJECT = """
[project]
name = "attention-course"
[project.optional-dependencies]
author = ["one>=1", "two>=2"]
more = ["four>=4"]
test = ["attention-course[author, more]", "three>=3"]
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A course with nothing in it; the environment is to be made in its folder .venv."""
    root = tmp_path / "my cöurse"
    (root / "course_utils").mkdir(parents=True)
    (root / "course_utils" / "__init__.py").write_text("")
    (root / "requirements.txt").write_text("torch==9.8.7\n")
    (root / "pyproject.toml").write_text(PYPROJECT)
    for module in (state, folders, packages, checkup):
        monkeypatch.setattr(module, "ROOT", root)
    return root


@pytest.fixture
def venv(root):
    return root / ".venv"


@pytest.fixture
def facts(root, monkeypatch):
    """What the environment's Python would say of itself; None: it does not run."""
    answer = {
        "python": [3, 12],
        "pip": True,
        "torch": "9.8.7+cpu",
        "setuptools": "80.1",
        "course": str(root / "course_utils" / "__init__.py"),
        "site": str(root),
    }
    current = {"facts": answer}
    for module in (state, folders, packages):
        monkeypatch.setattr(module, "probe", lambda venv: current["facts"])
    return current


@pytest.fixture
def ready(venv, facts):
    """An environment that is complete, as far as its record and its Python say."""
    venv.mkdir()
    record = {
        "state": "ready",
        "venv": str(venv),
        "python": [3, 12],
        "extras": ["author"],
        "cpu_torch": False,
    }
    write_record(venv, dict(record, fingerprint=state.fingerprint()))
    return venv


@pytest.fixture
def pip_calls(monkeypatch):
    """Records what pip is asked, instead of running it; `fail` makes every call fail."""
    calls = {"asked": [], "fail": False}

    def pip(venv, *arguments):
        calls["asked"].append(list(arguments))
        if calls["fail"]:
            raise Stop("no network")

    monkeypatch.setattr(packages, "pip", pip)
    return calls


# ---------------------------------------------------------------- what is to be done


def test_a_complete_environment_is_left_alone(ready):
    assert judge(ready, None) == ("ready", "")
    assert judge(ready, "author") == ("ready", "")


@pytest.mark.parametrize("make", [lambda venv: None, lambda venv: venv.mkdir()], ids=["missing", "empty"])
def test_the_first_start(venv, facts, make):
    make(venv)
    assert judge(venv, None)[0] == "rebuild"


def test_a_folder_without_python_is_rebuilt(ready, facts):
    facts["facts"] = None
    assert judge(ready, None)[0] == "rebuild"


@pytest.mark.parametrize(
    "damage",
    [
        {"state": "installing"},
        {"python": [3, 11]},
    ],
    ids=["interrupted", "python replaced"],
)
def test_a_damaged_environment_is_rebuilt(ready, damage):
    write_record(ready, dict(read_record(ready), **damage))
    action, reason = judge(ready, None)
    assert action == "rebuild" and reason


@pytest.mark.parametrize(("key", "value"), [("pip", False), ("python", [3, 10])])
def test_an_unusable_python_is_rebuilt(ready, facts, key, value):
    facts["facts"] = dict(facts["facts"], **{key: value})
    assert judge(ready, None)[0] == "rebuild"


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
def test_changed_requirements_are_installed(ready, root, name):
    (root / name).write_text((root / name).read_text() + "\n# more\n")
    assert judge(ready, None)[0] == "update"


def test_line_endings_are_no_change(ready, root):
    text = (root / "requirements.txt").read_bytes()
    (root / "requirements.txt").write_bytes(text.replace(b"\n", b"\r\n"))
    assert judge(ready, None)[0] == "ready"


def test_a_moved_environment_that_works_is_kept(ready, facts):
    write_record(ready, dict(read_record(ready), venv="/where/it/was/before/.venv"))
    assert judge(ready, None) == ("update", "the folder was moved or copied")
    facts["facts"] = None
    assert judge(ready, None)[0] == "rebuild"


def test_a_missing_extra_is_installed(ready):
    assert judge(ready, "test")[0] == "update"


def test_an_environment_of_another_copy_of_the_course_is_relinked(ready, facts):
    facts["facts"] = dict(facts["facts"], course="/elsewhere/course_utils/__init__.py")
    assert judge(ready, None)[0] == "update"


def test_a_damaged_record_counts_as_none(ready):
    record_file(ready).write_text("{half a rec")
    assert judge(ready, None)[0] == "update"


def test_an_incomplete_copy_of_the_course_is_named(ready, root):
    (root / "requirements.txt").unlink()
    with pytest.raises(Stop, match=r"requirements\.txt is missing"):
        judge(ready, None)


def test_course_venv_names_another_folder(tmp_path, root, monkeypatch):
    monkeypatch.setenv("COURSE_VENV", str(tmp_path / "other"))
    assert state.venv_folder() == (tmp_path / "other").resolve()
    monkeypatch.setenv("COURSE_VENV", " ")
    assert state.venv_folder() == root / ".venv"


# ---------------------------------------------------------------- folders


def test_a_folder_with_something_else_in_it_is_never_deleted(tmp_path, root):
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter.txt").write_text("years of work")
    with pytest.raises(Stop, match="Nothing was deleted"):
        folders.remove(precious)
    assert (precious / "chapter.txt").exists()


def test_our_own_folders_are_deleted(tmp_path, ready):
    folders.remove(ready)
    assert not ready.exists()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_record(elsewhere, {"state": "installing"})
    folders.remove(elsewhere)
    assert not elsewhere.exists()


def test_a_read_only_folder_has_a_way_out(venv, monkeypatch):
    def refuse(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folders.tempfile, "TemporaryFile", refuse)
    with pytest.raises(Stop) as stop:
        folders.require_writable(venv)
    for word in (str(venv.parent), "copy the course folder", "COURSE_VENV", "COURSE_WORK"):
        assert word in str(stop.value)


def test_an_environment_of_another_copy_that_cannot_be_written_names_that_copy(ready, root, facts, monkeypatch):
    monkeypatch.setattr(folders, "writable", lambda folder: False)
    with pytest.raises(Stop, match="Cannot write"):
        folders.require_writable(ready)
    other = root.parent / "the shared one"
    facts["facts"] = dict(facts["facts"], course=str(other / "course_utils" / "__init__.py"))
    with pytest.raises(Stop, match="another copy of the course") as stop:
        folders.require_writable(ready)
    assert str(other) in str(stop.value) and "COURSE_VENV" in str(stop.value)
    facts["facts"] = None
    with pytest.raises(Stop, match="does not run for you"):
        folders.require_writable(ready)


@pytest.mark.parametrize("error", [Stop("no network"), KeyboardInterrupt()], ids=["failed", "Ctrl-C"])
def test_the_environment_comes_back_if_the_new_one_fails(ready, error):
    (ready / "precious").touch()
    with pytest.raises(type(error)), folders.set_aside(ready, cpu_torch=True):
        assert not ready.exists()
        ready.mkdir()
        write_record(ready, {"state": "installing"})
        (ready / "install.log").write_text("why")
        raise error
    assert (ready / "precious").exists() and not folders.old_folder(ready).exists()
    assert read_record(ready)["state"] == "ready" and read_record(ready)["cpu_torch"] is True
    assert (ready / "install.log").read_text() == "why", "the message names this file"


def test_the_old_environment_is_deleted_if_the_new_one_works(ready):
    with folders.set_aside(ready):
        ready.mkdir()
        (ready / "new").touch()
    assert [file.name for file in ready.iterdir()] == ["new"] and not folders.old_folder(ready).exists()


def test_after_a_kill_the_environment_that_waits_is_not_lost(ready):
    ready.rename(folders.old_folder(ready))
    ready.mkdir()
    write_record(ready, {"state": "installing"})
    with pytest.raises(Stop), folders.set_aside(ready):
        raise Stop("no network")
    assert read_record(ready)["state"] == "ready"


def test_half_an_installation_is_not_kept(venv, root):
    venv.mkdir()
    write_record(venv, {"state": "installing"})
    with pytest.raises(Stop), folders.set_aside(venv):
        assert not venv.exists()
        raise Stop("no network")
    assert not venv.exists() and not folders.old_folder(venv).exists()


def test_a_full_disk_leaves_the_old_record(ready, monkeypatch):
    before = read_record(ready)

    def full(self, text, **how):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(Stop, match="No space left"):
        write_record(ready, {"state": "installing"})
    assert read_record(ready) == before


def test_two_starts_do_not_install_at_once(venv):
    holder = "from course_utils.environment.folders import only_one; from pathlib import Path; import sys\n"
    holder += "with only_one(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holder, str(venv)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        lock = next(iter(Path(folders.tempfile.gettempdir()).glob(f"course-{folders.lock_name(venv)}.lock")))
        with lock.open("w") as handle:
            assert not folders.try_lock(handle)
            other.communicate("")
            assert folders.try_lock(handle)


# ---------------------------------------------------------------- installing


def test_extras_refer_to_each_other(root):
    assert packages.extra_requirements("test") == {"one>=1", "two>=2", "three>=3", "four>=4"}
    assert packages.extra_requirements("nothing") == set()


def test_everything_is_installed_in_one_resolution(ready, pip_calls):
    packages.install(ready, {"test"}, cpu_torch=False)
    requirements = next(call for call in pip_calls["asked"] if "-r" in call)
    assert {"one>=1", "two>=2", "three>=3", "four>=4"} <= set(requirements)
    assert any("--editable" in call and "--no-deps" in call for call in pip_calls["asked"])
    assert read_record(ready)["state"] == "ready" and read_record(ready)["extras"] == ["test"]


def test_the_link_needs_no_network_when_setuptools_is_there(ready, facts, pip_calls):
    packages.link_course(ready)
    assert "--no-build-isolation" in pip_calls["asked"][0]
    facts["facts"] = dict(facts["facts"], setuptools="65.5.0")
    packages.link_course(ready)
    assert "--no-build-isolation" not in pip_calls["asked"][1]


def test_a_read_only_course_is_linked_without_writing_into_it(ready, root, pip_calls, monkeypatch):
    monkeypatch.setattr(packages, "writable", lambda folder: False)
    packages.link_course(ready)
    assert pip_calls["asked"] == []
    assert (root / "attention_course.pth").read_text(encoding="locale").strip() == str(root)


def test_without_network_the_course_is_still_linked(ready, root, pip_calls):
    pip_calls["fail"] = True
    packages.link_course(ready)
    path_file = root / "attention_course.pth"
    assert path_file.read_text(encoding="locale").strip() == str(root)
    pip_calls["fail"] = False
    packages.link_course(ready)
    assert not path_file.exists(), "it would outlive the next move of the folder"


@pytest.fixture
def linux_without_gpu(monkeypatch):
    monkeypatch.setattr(packages.sys, "platform", "linux")
    monkeypatch.setattr(packages.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)


def test_the_size_of_torch_is_told_before_the_download(ready, facts, pip_calls, capsys, linux_without_gpu):
    packages.install_cpu_torch(ready, False, "9.8.7")
    assert capsys.readouterr().out == "", "torch is there: nothing to tell"
    facts["facts"] = dict(facts["facts"], torch=None)
    packages.install_cpu_torch(ready, False, "9.8.7")
    assert "--cpu-torch" in capsys.readouterr().out and pip_calls["asked"] == []


def test_the_cpu_build_comes_from_its_own_index(ready, facts, pip_calls, linux_without_gpu):
    facts["facts"] = dict(facts["facts"], torch="9.8.6+cpu")
    packages.install_cpu_torch(ready, True, "9.8.7")
    assert pip_calls["asked"] == [["torch==9.8.7", "--index-url", packages.CPU_INDEX]]


def test_a_blocked_cpu_index_has_a_way_out(ready, facts, pip_calls, linux_without_gpu):
    facts["facts"] = dict(facts["facts"], torch=None)
    pip_calls["fail"] = True
    with pytest.raises(Stop, match="leave out --cpu-torch"):
        packages.install_cpu_torch(ready, True, "9.8.7")


def test_a_torch_that_is_there_is_not_downloaded_again(ready, facts, pip_calls, capsys, linux_without_gpu):
    packages.install_cpu_torch(ready, True, "9.8.7")
    facts["facts"] = dict(facts["facts"], torch="9.8.7")
    packages.install_cpu_torch(ready, True, "9.8.7")
    assert pip_calls["asked"] == [] and "--rebuild" in capsys.readouterr().out


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_elsewhere_the_usual_build_is_the_small_one(ready, facts, pip_calls, monkeypatch, platform):
    monkeypatch.setattr(packages.sys, "platform", platform)
    facts["facts"] = dict(facts["facts"], torch=None)
    packages.install_cpu_torch(ready, True, "9.8.7")
    assert pip_calls["asked"] == []


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        (
            "Failed to establish a new connection: NewConnectionError ... No matching distribution",
            "no network",
        ),
        ("ProxyError('Cannot connect to proxy.')", "HTTPS_PROXY"),
        ("SSLError(SSLCertVerificationError CERTIFICATE_VERIFY_FAILED", "PIP_CERT"),
        ("ERROR: No matching distribution found for torch==2.13.0", "64-bit Python"),
        ("ERROR: No matching distribution found for Babel==2.19.0", "PIP_NO_INDEX"),
        ("[WinError 5] Access is denied", "Close JupyterLab"),
        ("something nobody has seen", "messages above"),
    ],
)
def test_a_failed_installation_says_what_to_do(log, told):
    assert told in advice.explain(log)


@pytest.mark.parametrize("code", [-9, 137])
def test_a_killed_pip_is_no_riddle(code):
    assert "memory" in advice.explain("something nobody has seen", code)
    assert "memory" not in advice.explain("something nobody has seen", 1)


def test_a_failing_pip_stops_with_advice_and_the_log(ready, monkeypatch):
    def fail(command, **how):
        Path(command[command.index("--log") + 1]).write_text("Network is unreachable", encoding="utf-8")
        return 1

    monkeypatch.setattr(packages.subprocess, "call", fail)
    with pytest.raises(Stop) as stop:
        packages.pip(ready, "-r", "requirements.txt")
    assert "no network" in str(stop.value) and "install.log" in str(stop.value)


def test_without_ensurepip_debian_is_told_its_package(venv, monkeypatch):
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Stop, match="apt install python3-venv"):
        packages.create(venv)
    assert not venv.exists()


# ---------------------------------------------------------------- the whole way


def test_a_failed_update_leaves_the_old_environment_in_use(ready, root, pip_calls, capsys):
    (root / "requirements.txt").write_text("torch==9.9.9\n")
    before = read_record(ready)
    pip_calls["fail"] = True
    with pytest.raises(Stop):
        environment.prepare()
    assert environment.prepare(may_go_on=True) == venv_python(ready)
    assert "Going on" in capsys.readouterr().out
    assert read_record(ready) == before and judge(ready, None)[0] == "update"


def test_a_failed_update_keeps_the_wish_for_the_small_build(ready, root, pip_calls):
    (root / "requirements.txt").write_text("torch==9.9.9\n")
    pip_calls["fail"] = True
    with pytest.raises(Stop):
        environment.prepare(extra="test", cpu_torch=True)
    record = read_record(ready)
    assert record["cpu_torch"] is True and record["state"] == "ready"
    assert "test" not in record["extras"], "these are not installed"


@pytest.fixture
def interrupted(venv, root, monkeypatch):
    """A first start with --cpu-torch for the tests that was stopped with Ctrl-C during the download."""

    def interrupt(venv, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(packages.subprocess, "call", lambda command, **how: 0)
    monkeypatch.setattr(packages, "pip", interrupt)
    with pytest.raises(KeyboardInterrupt):
        environment.prepare(extra="test", cpu_torch=True)
    return venv


def test_an_interrupted_installation_is_taken_up_as_it_was_asked(interrupted, monkeypatch):
    asked = []
    monkeypatch.setattr(environment, "install", lambda *how: asked.append(how))
    environment.prepare()
    assert asked == [(interrupted, {"test"}, True)]


def test_an_interruption_before_the_first_package_is_remembered_too(venv, root, monkeypatch):
    def interrupt(command, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr(packages.subprocess, "call", interrupt)
    with pytest.raises(KeyboardInterrupt):
        environment.prepare(extra="test", cpu_torch=True)
    assert read_record(venv) == {"state": "installing", "extras": ["test"], "cpu_torch": True}


def test_rebuild_takes_the_usual_build_again(interrupted, monkeypatch):
    asked = []
    monkeypatch.setattr(environment, "install", lambda *how: asked.append(how))
    environment.prepare(rebuild=True)
    assert asked[0][2] is False


def test_a_moved_course_works_on_without_network(ready, facts, root, pip_calls):
    facts["facts"] = dict(facts["facts"], course="/before/course_utils/__init__.py")
    write_record(ready, dict(read_record(ready), venv="/before/.venv"))
    pip_calls["fail"] = True
    assert environment.prepare(may_go_on=True) == venv_python(ready)
    assert (root / "attention_course.pth").read_text(encoding="locale").strip() == str(root)


def test_an_environment_of_the_readers_own_is_never_deleted(root, facts, pip_calls, monkeypatch, tmp_path):
    own = tmp_path / "my own"
    own.mkdir()
    (own / "precious").touch()
    monkeypatch.setenv("COURSE_VENV", str(own))
    pip_calls["fail"] = True
    with pytest.raises(Stop):
        environment.prepare(cpu_torch=True)
    assert read_record(own)["cpu_torch"] is True
    write_record(own, dict(read_record(own), state="installing"))
    assert judge(own, None)[0] == "update", "an interruption is no reason to delete it"
    with pytest.raises(Stop, match="Nothing was deleted"):
        environment.prepare(rebuild=True)
    assert (own / "precious").exists()


# ---------------------------------------------------------------- doctor without an environment


def test_without_an_environment_doctor_installs_nothing_and_says_what_to_do(venv, root, monkeypatch, capsys):
    monkeypatch.setattr(checkup, "venv_folder", lambda: venv)
    assert checkup.doctor() == 1
    out = capsys.readouterr().out
    for word in (f"Python {sys.version_info[0]}.{sys.version_info[1]}", "can be written", "GB", "course.py setup"):
        assert word in out
    assert "no environment" in out and not venv.exists()


def test_doctor_says_why_an_environment_cannot_be_used(ready, facts, monkeypatch, capsys):
    monkeypatch.setattr(checkup, "venv_folder", lambda: ready)
    facts["facts"] = None
    assert checkup.doctor() == 1
    assert "does not run" in capsys.readouterr().out


def test_an_interrupted_installation_is_begun_anew(ready, root, monkeypatch):
    def interrupt(venv, *arguments):
        raise KeyboardInterrupt

    (root / "requirements.txt").write_text("torch==9.9.9\n")
    monkeypatch.setattr(packages, "pip", interrupt)
    with pytest.raises(KeyboardInterrupt):
        environment.prepare()
    assert judge(ready, None) == ("rebuild", "an earlier installation was interrupted")


@pytest.mark.slow
def test_an_environment_is_really_made_found_ready_broken_and_repaired(root, venv, monkeypatch):
    """A real Python without packages, linked as in a read-only folder: that needs no network."""
    (root / "requirements.txt").write_text("# nothing\n")
    monkeypatch.setattr(packages, "writable", lambda folder: False)
    python = environment.prepare()
    ask = [
        str(python),
        "-I",
        "-c",
        "import course_utils, sys; print(course_utils.__file__, sys.prefix, sep='\\n')",
    ]
    package, prefix = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.splitlines()
    assert Path(package).parent.parent == root and Path(prefix) == venv
    assert judge(venv, None)[0] == "ready"

    python.unlink()
    assert judge(venv, None)[0] == "rebuild"
    environment.prepare()
    assert judge(venv, None)[0] == "ready"

    moved = root.parent / "moved"
    root.rename(moved)
    for module in (state, folders, packages):
        monkeypatch.setattr(module, "ROOT", moved)
    python = venv_python(moved / ".venv")
    (moved / ".venv" / "precious").touch()
    assert judge(moved / ".venv", None)[0] == "update"
    environment.prepare()
    assert judge(moved / ".venv", None)[0] == "ready" and (moved / ".venv" / "precious").exists()
    ask[0] = str(python)
    package = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    assert Path(package).parent.parent == moved
