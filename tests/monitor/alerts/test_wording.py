"""Names with any character in texts, commands, messages and JSON."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.monitor.alerts.defaults import DEFAULTS
from barnabas.monitor.alerts.notices import Notice
from barnabas.monitor.alerts.rule import Finding, Rule, labels_of
from barnabas.monitor.alerts.states import Alert, AlertBook
from barnabas.monitor.alerts.wording import command, visible
from barnabas.monitor.checks.scraped_metrics import MetricHistory, samples_of
from barnabas.monitor.targets.mail import Mail

from .receiving import smtp_server

ODD = (
    "it's",
    'say "x"',
    "a b",
    "x; touch harm",
    "$(touch harm)",
    "`touch harm`",
    "line\nrun: me",
    "",
    "grün",
    "\\n",
)
NAMES = st.one_of(
    st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
)


def rule_named(name: str) -> Rule:
    return next(each for each in DEFAULTS if each.name == name)


def alert_of(rule: Rule, finding: Finding) -> Alert:
    book = AlertBook()
    (found,) = book.observe(rule, [finding], 0) + book.observe(rule, [finding], 10**9)
    return found


def words_of(text: str, folder: Path) -> list[str]:
    """The words that a shell makes of a command's arguments."""
    script = f"printf '%s\\0' {text}"
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@given(name=NAMES)
def test_a_name_stays_one_word_of_a_command(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    for template in ("a {n} b", "a '{n}' b", 'a "{n}" b'):
        assert words_of(command(template, {"n": name}), folder) == ["a", name, "b"]
    for template in ("a 'x={n};y' b", 'a "x={n};y" b'):
        assert words_of(command(template, {"n": name}), folder) == ["a", f"x={name};y", "b"]
    assert not (folder / "harm").exists()


def test_plain_names_are_not_quoted_and_unknown_ones_stay() -> None:
    assert (
        command("lag --group {g} --to {there} {{x}}", {"g": "a.b-c_1"})
        == "lag --group a.b-c_1 --to {there} {x}"
    )
    assert (
        command("curl '{u}/c/{n:url}/x'", {"u": "http://h:1", "n": "a b/c"})
        == "curl 'http://h:1/c/a%20b%2Fc/x'"
    )
    with pytest.raises(ValueError, match="a single"):
        command("{", {})


@pytest.mark.parametrize("name", ODD)
def test_commands_of_default_rules_are_safe_to_paste(name: str, tmp_path: Path) -> None:
    lag = rule_named("GroupFailing").command_for(Finding(3, labels_of(group=name, cluster="c")))
    assert words_of(lag, tmp_path)[:4] == ["barnabas", "lag", "--group", name]
    restart = rule_named("ConnectorFailed").command_for(
        Finding(1, labels_of(connector=name, url="http://h:1"))
    )
    assert len(words_of(restart, tmp_path)) == 4
    assert list(tmp_path.iterdir()) == []


def test_texts_show_every_character() -> None:
    assert visible("grün 读者") == "grün 读者"
    assert visible("a\nb\x1b[31m\u202ec") == "a\\nb\\x1b[31m\\u202ec"
    found = alert_of(rule_named("GroupFailing"), Finding(3, labels_of(group="a\nrun: me", cluster="c")))
    assert "\n" not in found.summary + found.command


def test_a_mail_about_an_odd_group_arrives() -> None:
    finding = Finding(3, labels_of(group="it's\r\nBcc: all@example.com", cluster="c"))
    found = alert_of(rule_named("GroupFailing"), finding)
    with smtp_server() as (address, mails):
        host, _, port = address.partition(":")
        mail = Mail("ops", host, int(port), "a@example.com", ("b@example.com",), "none")
        mail.deliver(Notice("ops", (("group", dict(found.labels)["group"]),), (found,), ()))
    (message,) = mails.messages
    assert message["Subject"] == "[CRITICAL] it's\\r\\nBcc: all@example.com"
    assert message["Bcc"] is None


METRIC = Rule("Slow", "metric", rule_named("GroupFailing").severity, "{value} ms", "it", "look", above=5)


def test_a_metric_that_is_no_number_is_no_finding() -> None:
    samples = samples_of('slow{q="1"} NaN\nslow{q="2"} 7\n', {"slow"}, "here")
    history = MetricHistory()
    history.add("here", samples, 0)
    assert [each.value for each in history.values("slow", "here")] == [7.0]


@pytest.mark.parametrize("value", [math.inf, 1e300, 123456.0, 6.25])
def test_any_number_has_a_text_and_is_kept(value: float) -> None:
    found = alert_of(METRIC, Finding(value))
    assert len(found.summary) < 30
    text = json.dumps(found.to_json(), allow_nan=False)
    assert Alert.from_json(json.loads(text)) == found


def test_an_alert_ends_when_its_value_is_no_number_any_more() -> None:
    book = AlertBook()
    assert len(book.observe(METRIC, [Finding(math.inf)], 0)) == 1
    assert len(book.observe(METRIC, [Finding(math.nan)], 1)) == 1
