"""docs/performance.md is what bench/results says, and nothing typed."""

from bench import document, results


def test_the_document_says_what_was_measured() -> None:
    measured = results.read(document.RESULTS)
    assert document.DOCUMENT.read_text(encoding="utf-8") == document.render(measured)


def test_every_benchmark_is_among_the_results() -> None:
    measured = {row.name.split(",")[0] for row in results.read(document.RESULTS).rows}
    assert measured >= {*document.NAMES, "memory"}
