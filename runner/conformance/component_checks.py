"""All checks of a component, in order: of its source, and of a few steps with its partners."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

from components import registry
from components.contracts.user_code import refusal
from components.errors import ConfigMismatchError, GlobalStreamError, NumericalError
from runner.compose.config import Job, prepare
from runner.compose.overrides import compose
from runner.conformance.outcomes import (
    CheckedComponent,
    CheckResult,
    NonConformanceError,
    NotCheckedError,
)
from runner.conformance.partners import SMALL, PartnerSearch, SmallRun, find_runs_with_part
from runner.conformance.role_checks import ROLE_CHECKS
from runner.conformance.source_checks import SOURCE_CHECKS
from runner.conformance.step_checks import DEPENDENT_CHECKS, STEP_CHECKS, STEPS, StepTrial
from runner.errors import ConfigError, nearest

PARTNERS = "partners"


def list_components(module: str) -> list[CheckedComponent]:
    """Components that an imported module, or a module inside it, registers."""
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
    find_runs = cache(partial(_find_runs, component, overrides))
    partners = _try_check(component, PARTNERS, lambda: "; ".join(map(str, find_runs())))
    yield partners
    if partners.state == "failed":
        yield from (_skip(component, check, PARTNERS) for check in STEP_CHECKS)
        return
    yield from _check_steps(component, find_runs(), [f"plugins=[{module}]", *overrides])


def _skip(component: CheckedComponent, check: str, *failed: str) -> CheckResult:
    return CheckResult(str(component), check, "not checked", f"{', '.join(failed)} failed")


def _try_check(component: CheckedComponent, check: str, function: Callable[[], str]) -> CheckResult:
    """Result of one check; any error of the component's is a failure with its place."""
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
    small_of_role = SMALL.get(role, {})
    small = SMALL | {role: small_of_role | {name: [*small_of_role.get(name, []), *own_keys]}}
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
    composed = cache(partial(compose, overrides))
    return lambda: prepare(*copy.deepcopy(composed()))
