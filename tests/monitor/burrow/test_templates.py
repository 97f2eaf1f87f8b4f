"""Templates of Burrow's notifiers, beside Go's own text/template."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from barnabas.monitor.alerts.rule import labels_of
from barnabas.monitor.alerts.states import Alert, State
from barnabas.monitor.burrow.notifier_targets import Template, incident
from barnabas.monitor.burrow.template_functions import FUNCTIONS
from barnabas.monitor.burrow.template_parsing import TemplateError, parse
from barnabas.monitor.burrow.template_running import Record, Run
from barnabas.monitor.lag.commit_window import NO_LAG, Commit
from barnabas.monitor.lag.judgement import Status
from barnabas.monitor.lag.statuses import GroupStatus, PartitionStatus

ORACLE = Path(__file__).parent / "oracle.go"
EXTRAS = {"app": "burrow", "tier": "one"}
FIRST = PartitionStatus(
    "orders",
    0,
    "/10.0.0.1",
    "ann",
    Status.STOP,
    Commit(5, 1000, 2000, 95, 1),
    Commit(7, 61000, 62000, 93, 2),
    193,
    0.4,
)
SECOND = PartitionStatus(
    "a<b>&c", 3, "", "", Status.WARN, Commit(1, 1000, 1000, NO_LAG, 1), Commit(2, 2000, 2000, 0, 2), 8, 1.0
)
GOOD = PartitionStatus("orders", 1, "", "", Status.OK, None, None, 0, 1.0)
GROUP = GroupStatus("local", "it's", Status.ERR, 0.5, (FIRST, SECOND, GOOD, GOOD), 201)
ALERT = Alert(
    "notifier.x", State.FIRING, "warning", labels_of(cluster="local", group="it's"), 3.0, "", "", "",
    1_700_000_000_000, subject=GROUP,
)  # fmt: skip

TEMPLATES = (
    "plain",
    "{{.Cluster}} {{.Group}} {{ .Result.Status }} {{.Result.Status.String}} {{.Result.Complete}}",
    '{{index .Extras "app"}}|{{.Extras.tier}}|{{index .Extras "none"}}|{{.Extras.none}}',
    "{{if eq .Result.Status 2}}WARN{{else}}ERR{{end}}",
    "{{if eq .Result.Status 2}}a{{else if gt .Result.TotalLag 200}}b{{else}}c{{end}}",
    (
        "{{if and .Cluster (eq .Result.TotalPartitions 4)}}yes{{en"
        'd}}{{if or false "x"}}x{{end}}{{if not .Cluster}}n{{end}}'
    ),
    (
        "{{range .Result.Partitions}}{{.Topic}}:{{.Partition}} "
        "{{.Status}} ({{.Start.Offset}}, {{.Start.Lag}})\n{{end}}"
    ),
    "{{range $i, $p := .Result.Partitions}}{{$i}}={{$p.Topic}} {{$.Cluster}};{{end}}",
    "{{range .Extras}}{{.}},{{end}}{{range $k, $v := .Extras}}{{$k}}={{$v}} {{end}}",
    '{{with .Result.Maxlag}}{{.CurrentLag}} {{.Owner}}{{else}}none{{end}}{{with ""}}a{{else}}b{{end}}',
    "{{.Result.Partitions | jsonencoder}}",
    "{{jsonencoder .Extras}}",
    '{{.Result.Partitions | len | printf "%03d"}}',
    "{{len .Result.Partitions}} {{len .Group}} {{add 1 2}} {{divide 7 2}} {{divide -7 2}} {{minus 1 5}}",
    "a  {{- .Cluster -}}  b\n{{- /* no text */ -}}\n c",
    "{{/* only this */}}x",
    '{{.Start.Format "Jan 02, 2006 15:04:05 UTC"}} {{.Start.Format "2006-01-02T15:04:05Z07:00"}}',
    '{{.Start.Format "Mon Monday 1/2/06 3:4:5 PM .000 -0700 MST _2"}} {{.Start.Unix}}',
    '{{formattimestamp 61000 "2006-01-02 15:04:05.000"}}',
    '{{$x := .Cluster}}{{$x}}{{$x = "b"}}{{$x}}{{if true}}{{$x = "c"}}{{$y := 1}}{{$y}}{{end}}{{$x}}',
    '{{printf "%s|%q|%5d|%-5d|%.2f|%v|%%" .Cluster .Group 7 7 1.5 true}}',
    '{{print 1 2 "a"}}{{println 1 "b"}}',
    '{{`raw "text"`}} {{"tab\\t\\u00e9"}} {{true}} {{1.5}} {{-3}}',
    '{{urlquery "a b&c"}} {{html "<a>\'"}} {{slice "abcdef" 1 3}}',
    "{{(index .Result.Partitions 1).Topic}} {{(index .Result.Partitions 0).End.Timestamp}}",
    "{{if .Nothing}}{{end}}",
    "{{.Result.None}}",
    "{{nofunction 1}}",
    "{{if true}}",
    "{{end}}",
    "{{",
    "{{.Cluster",
    "{{1 2}}",
    "{{(index .Result.Partitions 9).Topic}}",
    "{{divide 1 0}}",
    "{{$z}}",
    "{{range 5}}{{.}}{{end}}",
    "{{.Cluster | }}",
    (
        "{{if lt 1 2}}a{{end}}{{if le 2 2}}b{{end}}{{if ge 1 2"
        "}}c{{end}}{{if ne 1 2}}d{{end}}{{if eq 1 2 1}}e{{end}}"
    ),
    (
        '{{define "row"}}<{{.Topic}} {{$.Partition}}>{{end}}'
        '{{range .Result.Partitions}}{{template "row" .}}{{end}}'
    ),
    '{{template "late" .Cluster}}{{define "late"}}[{{.}}]{{end}}',
    '{{template "nil"}}{{define "nil"}}{{.}}|{{if .}}a{{else}}b{{end}}{{end}}',
    '{{template "none"}}',
    'a{{if false}}{{template "none"}}{{end}}b',
    '{{block "title" .Group}}{{.}}!{{end}} {{template "title" .Cluster}}',
    '{{define "x"}}one{{end}}{{define "x"}}two{{end}}{{template "x"}}',
    '{{define "x"}}one{{end}}{{define "x"}}  {{end}}{{template "x"}}',
    '{{define "x"}} {{end}}{{define "x"}}two{{end}}{{template "x"}}',
    '{{define "x"}}one{{end}}{{block "x" .}}two{{end}}',
    '{{if true}}{{define "x"}}{{end}}{{end}}',
    '{{if true}}{{block "x" 5}}{{.}}{{end}}{{end}}',
    '{{block "x"}}{{end}}',
    '{{define "x" .}}{{end}}',
    "{{template .Cluster}}",
    '{{$v := 1}}{{define "x"}}{{$v}}{{end}}{{template "x"}}',
    '{{template `raw` "a" | printf "%s-%s" "b"}}{{define `raw`}}{{.}}{{end}}',
    "{{range $i, $p := .Result.Partitions}}{{if $i}}{{break}}{{end}}{{$p.Topic}}{{end}}.",
    "{{range 5}}{{if eq . 1}}{{continue}}{{end}}{{if eq . 3}}{{break}}{{end}}{{.}}{{end}}.",
    "{{range 3}}{{range 3}}{{if eq . 1}}{{break}}{{end}}{{.}}{{end}}{{end}}",
    "{{break}}",
    "{{range 2}}a{{else}}{{break}}{{end}}",
    "{{range 2}}{{break 1}}{{end}}",
    '{{range 2}}{{block "x" .}}{{break}}{{end}}{{end}}',
    "{{range 2}}{{with .}}{{continue}}{{end}}{{.}}{{end}}",
    "{{range $i := 2}}{{$x := $i}}{{$x}}{{end}}",
    "{{- range 2 -}} a {{- end -}} b",
    "{{if(true)}}x{{end}}",
)


def text_of(template: str) -> str:
    value = incident(ALERT, EXTRAS)
    value = Record({**value.fields, "ID": "the-id"})
    try:
        return Run(FUNCTIONS, value).text(parse(template), value)
    except TemplateError:
        return "error"


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.mark.usefixtures("in_utc")
def test_texts_are_those_of_go() -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    environ = {**os.environ, "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    done = subprocess.run(
        ["go", "run", str(ORACLE)],
        input=json.dumps(TEMPLATES),
        capture_output=True,
        text=True,
        env=environ,
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    assert {text: text_of(text) for text in TEMPLATES} == dict(zip(TEMPLATES, theirs, strict=True))


@pytest.mark.usefixtures("in_utc")
def test_a_mail_of_burrows_form_is_filled_in() -> None:
    text = Template.of(
        "Subject: [Burrow] {{.Group}}\n\n"
        "{{range .Result.Partitions}}{{.Status.String}} {{.Topic}}:{{.Partition}} "
        "({{.Start.Timestamp}}, {{.Start.Offset}}, {{.Start.Lag}})\n{{end}}"
        "{{range $status, $topics := .Result.Partitions | topicsbystatus}}{{$status}}={{$topics}} {{end}}"
        "{{$counts := partitioncounts .Result.Partitions}}{{$counts.stop}} {{maxlag .Result.Maxlag}}"
    ).text(ALERT, EXTRAS)
    assert text == (
        "Subject: [Burrow] it's\n\nSTOP orders:0 (1000, 5, {95})\nWARN a<b>&c:3 (1000, 1, <nil>)\n"
        "STOP=[orders] WARN=[a<b>&c] 1 193"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('a\n{{if true}}{{define "x"}}{{end}}{{end}}', 'line 2: define "x" is not expected here'),
        ('{{define "x"}}a{{end}}\n{{block "x" .}}b{{end}}', "line 2: the template 'x' is defined twice"),
        ("{{template x}}", "line 1: the name of a template in quotes is missing"),
        ("{{break}}", "line 1: break is not expected here"),
        ("{{range .A}}", "line 1: range without end"),
        ("\n\n{{ .A", "line 3: an action does not end"),
        ("{{ .A % 2 }}", "is not understood"),
        ("{{if true}}" * 60 + "{{end}}" * 60, "more than 50 blocks"),
    ],
)
def test_an_error_names_the_line(text: str, told: str) -> None:
    with pytest.raises(TemplateError, match=told):
        parse(text)


def test_a_template_that_includes_itself_ends() -> None:
    text = '{{define "a"}}{{template "b" .}}{{end}}{{define "b"}}{{template "a" .}}{{end}}{{template "a" .}}'
    with pytest.raises(TemplateError, match="more than 50 templates"):
        Run(FUNCTIONS, None).text(parse(text), None)


def test_an_endless_text_ends() -> None:
    with pytest.raises(TemplateError, match="more than"):
        Run(FUNCTIONS, None).text(parse("{{range 3000000}}aa{{end}}"), None)
