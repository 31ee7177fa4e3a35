"""Reports render as tables in a notebook, whatever names hold."""

from __future__ import annotations

import flowbook as fb
from flowbook.exec.report import Report, Table, in_bytes, scaled
from flowbook.widgets.tables import report_html, table_html
from tests.explain.models import classifier


def test_numbers_have_three_digits() -> None:
    assert [scaled(n) for n in (0, 7, 999, 1000, 12_345, 999_999, 1e9)] == [
        "0 ", "7 ", "999 ", "1.00 k", "12.3 k", "1.00 M", "1.00 G",
    ]  # fmt: skip
    assert in_bytes(2048) == "2.05 kB"


def test_every_report_has_both_forms() -> None:
    model = classifier()
    sess = fb.Session()
    runs = [fb.observe(sess, model.loss, model.feeds, dtype=d) for d in (None, fb.float64)]
    shapes = {k: fb.Shape(getattr(v, "shape", ())) for k, v in model.feeds.items()}
    for report in (
        fb.parameter_counts(),
        fb.lint(loss=model.loss),
        fb.forecast(model.loss, shapes),
        fb.compare(*runs),
    ):
        assert repr(report).splitlines()[0] == report.table.title
        assert report.table.title in report_html(report)


def test_hostile_text_is_text() -> None:
    class Hostile(Report):
        @property
        def table(self) -> Table:
            return Table("<script>", ("<b>",), [("  <img>",)], ["</p>"])

    html = report_html(Hostile())
    for tag in ("<script>", "<b>", "<img>", "</p></p>"):
        assert tag not in html
    assert "&nbsp;&nbsp;&lt;img&gt;" in html


def test_a_number_stays_with_its_unit_and_a_long_name_gives_way() -> None:
    html = table_html(Table("", ("in a/b c", "of a d"), [("a/b c", "3.0 us")], (), (1,)))
    for shown in (">in a/<wbr>b c<", ">of&nbsp;a&nbsp;d<", ">a/<wbr>b c<", ">3.0&nbsp;us<"):
        assert shown in html
