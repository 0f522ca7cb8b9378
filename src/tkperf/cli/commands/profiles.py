"""tkperf profiles: list the specifications, or explain one specification key by key."""

from __future__ import annotations

import click

from tkperf.cli.calling import Command, CommandGroup
from tkperf.cli.kinds import ProfileName
from tkperf.cli.suite_options import json_option
from tkperf.model.choices import built_in_profiles
from tkperf.model.errors import UsageError, closest, not_known
from tkperf.model.input_files import is_toml_path


class _Profiles(CommandGroup):
    """The group ``tkperf profiles``. The user can also give the name of a profile directly after this command."""

    def describe_unknown(self, ctx: click.Context, name: str) -> str:
        if closest(name, self.list_commands(ctx)):
            return super().describe_unknown(ctx, name)
        shipped = built_in_profiles()
        if name in shipped or is_toml_path(name):
            return f"'{ctx.command_path} show {name}' explains this profile"
        return f"{not_known('profile', name, shipped)}; '{ctx.command_path} show NAME' explains one"


@click.group(cls=_Profiles, invoke_without_command=True)
@json_option
@click.pass_context
def profiles(context: click.Context, as_json: bool) -> None:
    """List the profiles that tkperf contains. Each profile contains the numbers of one specification.

    'tkperf profiles show NAME' explains each key of a profile, with the sources of the numbers, and describes what each
    test would measure. NAME can also be the path of your own TOML file.

    \b
    Examples:
      tkperf profiles
      tkperf profiles show pts-2.0
      tkperf profiles show ./mine.toml --json
    """
    if context.invoked_subcommand is None:
        from tkperf.render.terminal.plans_and_profiles import list_profiles

        list_profiles(as_json=as_json)


@profiles.command(cls=Command)
@click.argument("name", type=ProfileName(built_in_profiles()))
@json_option
@click.option(
    "--toml",
    "as_toml",
    is_flag=True,
    help="Print the file of the profile. To write your own profile, change a copy of this file.",
)
def show(name: str, as_json: bool, as_toml: bool) -> None:
    """Explain each key of a profile, and describe what each test of the profile would measure.

    NAME is a profile of tkperf, or the path of your own TOML file.

    \b
    Examples:
      tkperf profiles show pts-c-1.2
      tkperf profiles show pts-e-1.1 --toml > mine.toml
    """
    from tkperf.render.terminal.plans_and_profiles import explain_profile, print_profile_text

    if as_json and as_toml:
        raise UsageError("--json and --toml are different forms of the same output. Pass only one of these options")
    if as_toml:
        print_profile_text(name)
        return
    explain_profile(name, as_json=as_json)
