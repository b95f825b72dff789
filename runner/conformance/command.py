"""``runner test MODULE``: conformance of the components that a module registers."""

from __future__ import annotations

import copy
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING

from components import registry
from runner.catalogue import plugins
from runner.disk import conf_folders
from runner.errors import ConfigError, nearest
from runner.terminal.arguments import Parser, add_json
from runner.terminal.tables import print_json, print_table

if TYPE_CHECKING:
    from runner.compose.config import Job
    from runner.conformance.outcomes import CheckedComponent, CheckResult
    from runner.conformance.partners import SmallRun
    from runner.conformance.step_checks import StepTrial

PARTNERS = "partners"


def list_components(module: str) -> list[CheckedComponent]:
    """Components that an imported module, or a module inside it, registers."""
    from runner.conformance.outcomes import CheckedComponent

    found = [
        CheckedComponent(role, name, registry.get(role, name))
        for role in registry.ROLES
        for name in registry.names(role)
        if registry.is_imported(role, name)
    ]
    return [one for one in found if f"{one.cls.__module__}.".startswith(f"{module}.")]


def check_component(
    component: CheckedComponent, module: str, overrides: list[str]
) -> Iterator[CheckResult]:
    """Results of all checks of a component, in order.

    ``overrides`` (``role=name`` or keys) fix partners and settings of the runs.
    """
    from runner.conformance.source_checks import SOURCE_CHECKS
    from runner.conformance.step_checks import STEP_CHECKS

    failed = set[str]()
    for check, function in SOURCE_CHECKS.items():
        if check == "refusals" and "keys" in failed:
            yield _skip(component, check, "keys")
            continue
        result = _try_check(component, check, partial(function, component))
        failed |= {check} if result.state == "failed" else set()
        yield result
    if unusable := failed & {"declarations", "keys"}:
        yield from (_skip(component, check, *unusable) for check in (PARTNERS, *STEP_CHECKS))
        return
    runs: tuple[SmallRun, ...] = ()

    def find_partners() -> str:
        nonlocal runs
        runs = _find_runs(component, overrides)
        return "; ".join(map(str, runs))

    partners = _try_check(component, PARTNERS, find_partners)
    yield partners
    if partners.state == "failed":
        yield from (_skip(component, check, PARTNERS) for check in STEP_CHECKS)
        return
    yield from _check_steps(component, runs, [f"plugins=[{module}]", *overrides])


def _skip(component: CheckedComponent, check: str, *failed: str) -> CheckResult:
    from runner.conformance.outcomes import CheckResult

    return CheckResult(str(component), check, "not checked", f"{', '.join(failed)} failed")


def _try_check(component: CheckedComponent, check: str, function: Callable[[], str]) -> CheckResult:
    """Result of one check; any error of the component's is a failure with its place."""
    from components.contracts.user_code import refusal
    from components.errors import ConfigMismatchError
    from runner.conformance.outcomes import CheckResult, NonConformanceError, NotCheckedError

    try:
        return CheckResult(str(component), check, "passed", function())
    except NotCheckedError as error:
        return CheckResult(str(component), check, "not checked", str(error))
    except (NonConformanceError, ConfigError, ConfigMismatchError, LookupError) as error:
        reason: BaseException = error
    except Exception as error:
        reason = refusal(str(component), error, component.cls)
    return CheckResult(str(component), check, "failed", " ".join(str(reason).split()))


def _find_runs(component: CheckedComponent, overrides: list[str]) -> tuple[SmallRun, ...]:
    """The smallest runs with a component.

    Raises:
        LookupError: nothing fits it.
    """
    from runner.conformance.partners import SMALL, PartnerSearch, find_runs_with_part

    fixed = dict(word.split("=", 1) for word in overrides if word.split("=")[0] in registry.CHOSEN)
    for partner, chosen in fixed.items():
        if not registry.exists(partner, chosen):
            near = nearest(chosen, registry.names(partner))
            raise ConfigError(f"{partner}={chosen}: no such {partner}{near}")
    role, name = component.role, component.name
    own_keys = [
        word.removeprefix(f"{role}.")
        for word in overrides
        if word.startswith(f"{role}.") and word.split("=")[0].count(".") == 1
    ]
    own_small = [*SMALL.get(role, {}).get(name, []), *own_keys]
    small = {**SMALL, role: {**SMALL.get(role, {}), name: own_small}}
    try:
        if role in registry.CHOSEN:
            return PartnerSearch(small).find_runs(role, name, **{**fixed, role: name})
        return find_runs_with_part(role, name, **fixed)
    except LookupError as error:
        raise LookupError(
            f"{error}; name partners, such as runner test … dataset=NAME model=NAME, or check "
            "what the class requires and offers"
        ) from None


def _check_steps(
    component: CheckedComponent, runs: tuple[SmallRun, ...], overrides: list[str]
) -> Iterator[CheckResult]:
    """Results of the checks on steps; the first run that fails a check decides it."""
    from runner.conformance.role_checks import ROLE_CHECKS
    from runner.conformance.step_checks import DEPENDENT_CHECKS, STEP_CHECKS, STEPS, StepTrial

    with tempfile.TemporaryDirectory() as place:
        fixed = [f"output_dir={place}", "tracking=false", "smoke=true", f"steps={STEPS}"]
        trials = {}
        for run in runs:
            make_job = _job_factory([*fixed, *run.overrides, *overrides])
            trials[run] = StepTrial(make_job, component.cls)
            if failure := _find_failure(component, run, trials[run]):
                skipped = [check for check in STEP_CHECKS if check != failure.check]
                yield failure
                yield from (_skip(component, check, failure.check) for check in skipped)
                return
        unusable: dict[str, str] = {}
        for check, function in (STEP_CHECKS | ROLE_CHECKS.get(component.role, {})).items():
            if check in unusable:
                yield _skip(component, check, unusable[check])
                continue
            result = _try_runs(component, check, function, trials)
            if result.state == "failed":
                unusable |= dict.fromkeys(DEPENDENT_CHECKS.get(check, ()), check)
            yield result


def _try_runs(
    component: CheckedComponent,
    check: str,
    function: Callable[[StepTrial], str],
    trials: dict[SmallRun, StepTrial],
) -> CheckResult:
    """Result of a check on every run, the first that fails or the last."""
    for run, trial in trials.items():
        result = _try_check(component, check, partial(function, trial))
        if result.state == "failed":
            return replace(result, reason=f"{run}: {result.reason}")
    return result


def _find_failure(
    component: CheckedComponent, run: SmallRun, trial: StepTrial
) -> CheckResult | None:
    """Failed check of a run that does not come to its scores; None: it does."""
    from components.errors import GlobalStreamError, NumericalError
    from runner.conformance.outcomes import CheckResult

    check = "steps"

    def take_steps() -> str:
        nonlocal check
        try:
            trial.scores  # noqa: B018
        except GlobalStreamError:
            check = "random numbers"
            raise
        except NumericalError:
            check = "finite"
            raise
        return ""

    result = _try_check(component, check, take_steps)
    if result.state == "passed":
        return None
    return CheckResult(str(component), check, "failed", f"{run}: {result.reason}")


def _job_factory(overrides: list[str]) -> Callable[[], Job]:
    """Function that prepares a job from overrides, with new components at each call."""
    from runner.compose.config import prepare
    from runner.compose.overrides import compose

    composed = None

    def make_job() -> Job:
        nonlocal composed
        composed = composed or compose(overrides)
        return prepare(*copy.deepcopy(composed))

    return make_job


def main(argv: list[str]) -> int:
    """Check the components of a module; exit code 1 if a check fails."""
    parser = Parser(
        prog="runner test",
        description="Checks the components that a module of yours registers: docstring, keys and their types, "
        "refusals, and, on a few steps with the smallest partners, finite values, random numbers from rng only, "
        "the same result for the same seed, a checkpoint that loses nothing, replicates that differ, inputs "
        "that stay unchanged, the law of a sampler's draws, and the size of an attack.",
        epilog="A line for each check: component, check, passed or failed, reason with file and line. "
        "Exit code 0, 1 if a check fails, 2 for a module that cannot be imported.",
    )
    parser.add_argument("module", help="the module, as plugins=[MODULE] names it")
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help="partners and settings of the runs, such as dataset=two_moons",
    )
    add_json(parser)
    conf_folders.add_option(parser)
    arguments = parser.parse_intermixed_args(argv[1:])
    if wrong := next((word for word in arguments.overrides if "=" not in word), None):
        raise ConfigError(f"runner test: {wrong}: give one module, then key=value")
    conf_folders.use(arguments.config_dir)
    module = plugins.module_name(arguments.module, "runner test")
    plugins.import_plugins([module], "runner test")
    components = list_components(module)
    if not components:
        raise ConfigError(
            f"runner test: {module} registers no component; decorate a class with @register(role, name)"
        )
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for component in components:
            for result in check_component(component, module, arguments.overrides):
                results.append(result)
                if arguments.json:
                    print_json([asdict(result)])
    if not arguments.json:
        rows = [(one.component, one.check, one.state, one.reason) for one in results]
        print_table("", ("component", "check", "state", "reason"), rows)
    return int(any(one.state == "failed" for one in results))
