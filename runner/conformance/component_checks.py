"""All checks of a component, in order: source checks, then a few steps with its partners."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

from components import registry
from components.contracts.user_code import refusal
from components.errors import ConfigMismatchError
from runner.compose.compose import compose
from runner.compose.job import Job, prepare
from runner.conformance.outcomes import (
    CheckedComponent,
    CheckResult,
    NonConformanceError,
    NotCheckedError,
)
from runner.conformance.partners import SMALL, PartnerSearch, SmallRun, find_runs_with_part
from runner.conformance.role_checks import ROLE_CHECKS
from runner.conformance.source_checks import SOURCE_CHECKS
from runner.conformance.step_checks import STEP_CHECKS, STEPS, StepCheck, StepTrial
from runner.disk.scratch import scratch_folder
from runner.errors import ConfigError, nearest

PARTNERS = "partners"
# checks that must have passed before a check, and before all checks on steps
NEEDS = {
    "refusals": ("keys",),
    PARTNERS: ("declarations", "keys"),
    "checkpoint": ("same seed",),
    "replicates": ("same seed",),
    "stationarity": ("same seed", "replicates"),
}
RUNNABLE = ("declarations", "keys", PARTNERS, "steps")


def list_components(module: str) -> list[CheckedComponent]:
    """Components registered by an imported module or its submodules."""
    components = [
        CheckedComponent(role, name, registry.get(role, name))
        for role in registry.ROLES
        for name in registry.names(role)
        if registry.is_imported(role, name)
    ]
    return [
        component
        for component in components
        if f"{component.cls.__module__}.".startswith(f"{module}.")
    ]


def check_component(
    component: CheckedComponent, module: str, overrides: list[str]
) -> Iterator[CheckResult]:
    """Results of all checks of a component, in order.

    ``overrides`` (``role=name`` or keys) set partners and keys of the runs.
    """
    find_runs = cache(partial(_find_runs, component, overrides))

    @cache
    def trials() -> dict[SmallRun, StepTrial]:
        fixed = [f"output_dir={place}", "tracking=false", "smoke=true", f"steps={STEPS}"]
        last = [f"plugins=[{module}]", *overrides]
        return {
            run: StepTrial(_job_factory([*fixed, *run.overrides, *last]), component.cls)
            for run in find_runs()
        }

    checks: dict[str, Callable[[], CheckResult]] = {
        check: partial(_try_check, component, check, partial(function, component))
        for check, function in SOURCE_CHECKS.items()
    }
    checks[PARTNERS] = partial(
        _try_check, component, PARTNERS, lambda: "; ".join(map(str, find_runs()))
    )
    on_steps = STEP_CHECKS | ROLE_CHECKS.get(component.role, {})
    checks |= {
        check: partial(_try_runs, component, check, function, trials)
        for check, function in on_steps.items()
    }
    failed: list[str] = []
    with scratch_folder() as place:
        for check, function in checks.items():
            needs = {*NEEDS.get(check, ()), *(RUNNABLE if check in on_steps else ())}
            if causes := [cause for cause in failed if cause in needs]:
                reason = f"{', '.join(causes)} failed"
                yield CheckResult(str(component), check, "not checked", reason)
                continue
            result = function()
            failed += [check] if result.state == "failed" else []
            yield result


def _try_check(component: CheckedComponent, check: str, function: Callable[[], str]) -> CheckResult:
    """Result of one check; an error of the component is a failure with its location."""
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
    """Smallest runs with a component.

    Raises:
        LookupError: no partner is compatible.
    """
    fixed = dict(word.split("=", 1) for word in overrides if word.split("=")[0] in registry.CHOSEN)
    for partner, chosen in fixed.items():
        if not registry.exists(partner, chosen):
            near = nearest(chosen, registry.names(partner))
            raise ConfigError(f"{partner}={chosen}: no such {partner}{near}")
    role = component.role
    name = component.name
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
            f"{error}; give partners, as in runner test … dataset=NAME model=NAME, or check "
            "the requirements of the class"
        ) from None


def _try_runs(
    component: CheckedComponent,
    check: str,
    function: StepCheck,
    trials: Callable[[], dict[SmallRun, StepTrial]],
) -> CheckResult:
    """Result of a check on several runs: the first failure, or else the last result."""
    for run, trial in trials().items():
        result = _try_check(component, check, partial(function, trial))
        if result.state == "failed":
            return replace(result, reason=f"{run}: {result.reason}")
    return result


def _job_factory(overrides: list[str]) -> Callable[[], Job]:
    """Function that prepares a job with new components at each call."""
    composed = cache(partial(compose, overrides))
    return lambda: prepare(copy.deepcopy(composed()))
