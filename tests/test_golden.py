"""Golden runs: there is one of every way that a record took, today's code gives its numbers, and a changed switch, loss
or generator is seen by the runs that go its way, and by no others."""

import copy
import importlib
import json
from types import ModuleType

import pytest

from rtx_core import records
from rtx_core.benchmark.bench import register_declared
from rtx_core.errors import RtxError
from rtx_core.models import registry
from rtx_core.paths import REPOSITORY
from rtx_core.records import fingerprint, golden

EXPECTED = fingerprint.golden_runs()
OF_BF16 = {name for name, run in EXPECTED.items() if run["config"]["train"]["precision"] == "bf16"}
# else the two paths draw different masks, or Muon makes much of the last bits
ALIKE = {
    name
    for name, run in EXPECTED.items()
    if not run["config"]["model"].get("dropout") and run["config"]["train"].get("optimizer") != "muon"
}


@pytest.fixture(scope="module", autouse=True)
def recurrences():
    """The study's, registered for these tests alone."""
    before = dict(registry.MODELS)
    register_declared()
    yield
    registry.MODELS.clear()
    registry.MODELS.update(before)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_recorded_numbers_hold(name):
    expected, rounded = {name: EXPECTED[name]}, name in OF_BF16
    found = golden.golden_runs(expected)
    assert golden.unlike(found, expected) == []
    if name in ALIKE:
        fast = {name: dict.fromkeys(golden.PATHS, found[name]["fast"])}
        wrong = golden.differences(fast, found, golden.ROUNDED if rounded else 1e-4)
        assert [each for each in wrong if not (rounded and each.endswith("written"))] == []


@pytest.fixture
def study(monkeypatch):
    monkeypatch.setenv("RTX_HOME", str(REPOSITORY))


def test_every_way_that_a_record_took_has_a_golden_run_and_all_code_is_registered(study):
    assert golden.missing_runs(EXPECTED) == {}
    assert golden.unregistered() == []
    models = {*golden.built_in_models(), *golden.declared_models()}
    assert {run["config"]["architecture"] for run in EXPECTED.values()} == models
    for record in records.records():
        if record["config"]["architecture"] in models:
            small = golden.shrink(record.task, record["config"])
            assert fingerprint.way(record.task, small) == fingerprint.way(record.task, record["config"])
    measurements = (m for kind in records.declaration("MEASUREMENTS") for m in records.measurements(kind))
    every = [*records.records(), *measurements]
    ours = [record for record in every if record.path.is_relative_to(REPOSITORY / "results")]  # and not runs/
    assert [str(record) for record in ours if record.stale_reason()] == []


def changed(module: str, old: str, new: str) -> ModuleType:
    """A module with other source, not imported by anybody."""
    source = fingerprint._read(module)
    assert source.count(old) == 1
    made = ModuleType(module)
    exec(compile(source.replace(old, new), module, "exec"), vars(made))
    return made


def runs_with(*words: str) -> set[str]:
    """Golden runs in whose task and settings these words stand."""
    return {name for name, run in EXPECTED.items() if all(word in json.dumps(run) for word in words)}


LOOPED, ALGORITHMIC = "rtx_core.models.looped", "rtx_core.data.algorithmic"
MUTANTS = {  # module, a method, a change of its source, and which golden runs see it
    "gate": (LOOPED, "Looped.one_pass", "before + F.linear(before", "before + 0.5 * F.linear(before", ['"gate": true']),
    "add": (LOOPED, "Looped.one_pass", "s = s + e\n", "s = s + 2 * e\n", ['"injection": "add"']),
    "linear": (LOOPED, "Looped.one_pass", "torch.cat((s, e)", "torch.cat((e, s)", ['"injection": "linear"']),
    "loop norm": (LOOPED, "Looped.one_pass", "self.loop_norm(s) if", "s if", ['"loop_norm": true']),
    "encoding": (LOOPED, "Looped.one_pass", "s + self.encoding[r]", "s - self.encoding[r]", ['"encoding": "pass"']),
    "random passes": (LOOPED, "Looped.begin_step", ".num_passes)) + 1", ".num_passes)) // 2 + 1", ['m_passes": true']),
    "backprop passes": (LOOPED, "Looped.states", "s.detach() if", "s if", ['"backprop_passes": 1']),
    "noise": ("rtx_core.models.llama", "LlamaBlock.draw_noise", "- 0.5)", "- 0.4)", ['"weight_noise": 4']),
    "hops": (ALGORITHMIC, "KHop.draw", "random.randint(len(self.parts)", "random.randint(2", [":KHop"]),
    "scan": (ALGORITHMIC, "GroupScan.loss", "losses).mean()", "losses[1:]).mean()", [":GroupScan"]),
    "facts": (ALGORITHMIC, "Facts.micro_batch", "([seed, epoch])", "([epoch, seed])", [":Facts"]),
    "group": (ALGORITHMIC, "GroupWords.draw", "n << halved", "n", [":GroupWords"]),
    "curriculum": ("study.curriculum", "GroupCurriculum.micro_batch", "i // self", "1 + i // self", [":GroupCurr"]),
    "its passes": ("study.curriculum", "GroupCurriculum.loss", "inputs.shape[1])", "2)", [":GroupCurr", "num_passes"]),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_change_is_seen_by_the_golden_runs_that_go_its_way(mutant, monkeypatch):
    module, method, old, new, words = MUTANTS[mutant]
    kind, name = method.split(".")
    seen = sorted(runs_with(*words), key=lambda run: (not run.startswith("khop"), run))
    if mutant in ("its passes", "scan"):  # a model that is run once takes no notice
        seen = [run for run in seen if EXPECTED[run]["config"]["model"]["num_passes"] > 1]
    others = sorted(runs_with(module.rpartition(".")[2] if module == ALGORITHMIC else "looped") - runs_with(*words))
    runs = {run: EXPECTED[run] for run in (seen[0], others[0])}
    monkeypatch.setattr(golden, "PATHS", ("plain",))
    other, there = getattr(changed(module, old, new), kind), importlib.import_module(module)
    if module.startswith("rtx_core.models"):
        monkeypatch.setattr(getattr(there, kind), name, vars(other)[name])
    else:
        monkeypatch.setattr(there, kind, other)
    golden._task.cache_clear()
    wrong = golden.differences(golden.golden_runs(runs), runs, golden.TOLERANCE)
    golden._task.cache_clear()
    assert {each.split(", ")[0] for each in wrong} == {seen[0]}


def test_differences_are_found():
    changed, (first, second, third, *_) = copy.deepcopy(EXPECTED), EXPECTED
    changed[first]["fast"]["train_loss"][2] *= 1 + 1e-3
    del changed[second]["plain"]["validation_loss"][-1]
    del changed[third]
    assert golden.differences(EXPECTED, EXPECTED) == []
    wrong = golden.differences(changed, EXPECTED)
    absent = [f"{third}, {path}, {kind}" for path in golden.PATHS for kind in EXPECTED[third][path]]
    assert wrong == [f"{first}, fast, train_loss", f"{second}, plain, validation_loss", *absent]
    assert f"{first}, fast, train_loss" not in golden.differences(changed, EXPECTED, 2e-3)
    changed[first]["fast"]["train_loss"][2] = float("nan")
    assert f"{first}, fast, train_loss" in golden.differences(changed, EXPECTED, 1.0)


NAME = next(name for name in EXPECTED if name.startswith("khop/1x4-gated"))
LATER = next(name for name in EXPECTED if name.startswith("khop/1x4-noise"))
PAIR = fingerprint.code_of("looped", "rtx_core.data.algorithmic:KHop")
MEASURED = ("study.measurements.growth", "rtx_core.data.algorithmic:KHop")


@pytest.fixture
def certificate(tmp_path, monkeypatch):
    """`golden` with two runs whose numbers and code are pretended: call it with today's code, numbers and the rest."""
    runs, state = {NAME: copy.deepcopy(EXPECTED[NAME])}, {"code": "", "then": {}}
    for name, content in {"SAME_NUMBERS": '{"commit": "then", "codes": {}}', "GOLDEN": json.dumps(runs)}.items():
        monkeypatch.setattr(fingerprint, name, tmp_path / name)
        (tmp_path / name).write_text(content)
    for cached in (fingerprint.registered, fingerprint.golden_runs, fingerprint.since):
        cached.cache_clear()
    pretended = {
        (fingerprint, "run_hash"): lambda *_: state["code"],
        (golden, "measurement_modules"): lambda: [MEASURED],
    }
    pretended[fingerprint, "module_hash"] = lambda *_: f"{state['code']} way to measure"
    pretended[golden, "golden_runs"] = lambda runs: {name: state["now"] for name in runs}
    pretended[golden, "_runs_at"] = lambda commit, runs: {
        name: state["then"][name] for name in runs.keys() & state["then"]
    }
    pretended[golden, "missing_runs"] = lambda runs: {n: EXPECTED[n] for n in state["lacking"] if n not in runs}
    pretended[golden, "changed_since"] = lambda *_: state["measured_otherwise"]
    for (module, name), value in pretended.items():
        monkeypatch.setattr(module, name, value)

    def run(code, now=EXPECTED[NAME], then=None, lacking=(), measured_otherwise=False, **how):
        then = {NAME: EXPECTED[NAME]} if then is None else then
        state.update(code=code, now=now, then=then, lacking=lacking, measured_otherwise=measured_otherwise)
        golden.main(**how)

    yield run
    for cached in (fingerprint.registered, fingerprint.golden_runs, fingerprint.since):
        cached.cache_clear()


def current(*codes: str, of: str = NAME, **model: object) -> bool:
    config = EXPECTED[of]["config"]
    return fingerprint.run_is_current(codes, EXPECTED[of]["task"], config | {"model": config["model"] | model})


def test_only_equal_numbers_are_accepted_and_what_was_accepted_stays(certificate):
    certificate("first", new=True)
    certificate("second", accept=True)
    assert fingerprint.measurement_is_current(["first way to measure"], MEASURED[1], MEASURED[0])
    certificate("third", accept=True, measured_otherwise=True)
    assert golden.unregistered() == []
    assert current("third") and current("first", "second") and not current("fourth")
    assert not fingerprint.measurement_is_current(["second way to measure"], MEASURED[1], MEASURED[0])
    other = copy.deepcopy(EXPECTED[NAME])
    other["fast"]["train_loss"][0] += 1e-9
    with pytest.raises(RtxError, match="Not accepted: here commit .* gives other khop/1x4-gated"):
        certificate("fourth", accept=True, then={NAME: other})
    other["fast"]["train_loss"][0] += 1
    with pytest.raises(RtxError, match="give other numbers than recorded: khop/1x4-gated"):
        certificate("fourth", now=other, accept=True)
    assert golden.unregistered() and not current("third")
    certificate("fourth", now=other, new=True)
    assert current("fourth") and not current("third")


def test_what_no_golden_run_has_executed_is_not_certified(certificate):
    certificate("first", new=True)
    certificate("second", accept=True)
    assert current("first") and not current("first", encoding="layer") and current("second", encoding="layer")
    assert not current("first", of=LATER) and current("second", of=LATER)
    certificate("third", accept=True, lacking=[LATER])  # which the code before could not do
    assert current("first") and not current("second", of=LATER) and current("third", of=LATER)
    certificate("fourth", accept=True, then={NAME: EXPECTED[NAME], LATER: EXPECTED[NAME]}, lacking=[LATER])
    assert current("third", of=LATER) and not current("second", of=LATER)


def test_a_golden_run_that_comes_later_certifies_the_code_that_it_has_run_on(certificate):
    certificate("first", new=True)
    then = {NAME: EXPECTED[NAME], LATER: EXPECTED[NAME] | {"code": "second"}}
    certificate("second", accept=True)
    certificate("third", accept=True, lacking=[LATER], then=then)
    assert current("first") and current("second", of=LATER) and not current("first", of=LATER)


def test_a_measuring_module_that_says_something_else_is_not_accepted(monkeypatch):
    module = "study.measurements.transfer"
    source = golden.REPOSITORY.joinpath(*module.split(".")).with_suffix(".py").read_text()

    def then(text):
        monkeypatch.setattr(fingerprint, "git", lambda *_: text)
        return golden.changed_since("0" * 40, module)

    assert not then(source + "# a remark\n") and not then(source.replace("predictions", "answers"))  # a local variable
    assert then(source.replace("(content, predictions)", "(predictions, content)"))
    assert then(source + "MORE = 1\n") and then(None)
