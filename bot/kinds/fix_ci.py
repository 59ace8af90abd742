"""Failing checks of a pull request: the agent looks for the cause and fixes it."""

from bot.kinds.shape import Does, Traits

TRAITS = Traits(
    name="fix_ci",
    does=Does.CHANGES,
    task=(
        "Find out why the checks fail whose output is given below, and mend the cause in the working directory. Do "
        "not switch a check off, skip a test or loosen what it asserts to get it through; where the check itself is "
        "wrong, mend that and say why. Run what you can of them before you are done. What is red on the base branch "
        "too is not yours to mend. Where you cannot mend it, change nothing and say what you found."
    ),
    goes_on=True,
    mends_checks=True,
)
