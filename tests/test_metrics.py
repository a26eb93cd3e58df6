import subprocess
import sys

import pytest

from kubewright.metrics import Registry, Sample, exponential_buckets


def samples(registry: Registry) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in registry.families()
        for sample in family.samples
    }


def test_counts_by_label_values() -> None:
    registry = Registry()
    total = registry.counter("requests_total", "Requests.", ["code", "method"])
    total.labels(code="200", method="GET").inc()
    total.labels(method="GET", code="200").inc(2)
    total.labels(code="404", method="GET").inc()
    assert samples(registry) == {
        ("requests_total", "200", "GET"): 3,
        ("requests_total", "404", "GET"): 1,
    }


def test_a_counter_refuses_to_go_down() -> None:
    with pytest.raises(ValueError, match="cannot go down"):
        Registry().counter("c", "").labels().inc(-1)


def test_a_gauge_goes_up_and_down() -> None:
    gauge = Registry().gauge("g", "").labels()
    gauge.set(5)
    gauge.inc()
    gauge.dec(3)
    assert gauge.value == 3


def test_a_gauge_can_be_asked_when_collected() -> None:
    registry = Registry()
    present = [1.0]
    registry.gauge("g", "").labels().add_function(lambda: present[0])
    present[0] = 7
    assert samples(registry) == {("g",): 7}


def test_a_histogram_accumulates_its_buckets() -> None:
    registry = Registry()
    histogram = registry.histogram("h", "Help.", ["name"], buckets=[1, 0.1]).labels(name="x")
    for value in (0.05, 0.1, 0.5, 30):
        histogram.observe(value)
    (family,) = registry.families()
    assert (family.kind, family.help, family.label_names) == ("histogram", "Help.", ("name",))
    assert family.samples == [
        Sample("h_bucket", {"name": "x", "le": "0.1"}, 2),
        Sample("h_bucket", {"name": "x", "le": "1"}, 3),
        Sample("h_bucket", {"name": "x", "le": "+Inf"}, 4),
        Sample("h_sum", {"name": "x"}, pytest.approx(30.65)),
        Sample("h_count", {"name": "x"}, 4),
    ]


def test_declaring_a_name_again_gives_the_same_instrument() -> None:
    registry = Registry()
    assert registry.counter("c", "", ["a"]) is registry.counter("c", "", ["a"])


def test_declaring_a_name_differently_is_refused() -> None:
    registry = Registry()
    registry.counter("c", "", ["a"])
    with pytest.raises(ValueError, match="already declared as a counter"):
        registry.gauge("c", "", ["a"])
    with pytest.raises(ValueError, match="already declared"):
        registry.counter("c", "", ["b"])


@pytest.mark.parametrize("labels", [{}, {"b": "1"}, {"a": "1", "b": "2"}])
def test_wrong_labels_are_refused(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="has the labels"):
        Registry().counter("c", "", ["a"]).labels(**labels)


def test_a_removed_child_is_no_longer_collected() -> None:
    registry = Registry()
    gauge = registry.gauge("g", "", ["a"])
    gauge.labels(a="1").set(1)
    gauge.remove(a="1")
    gauge.remove(a="never there")
    assert samples(registry) == {}


def test_exponential_buckets_multiply() -> None:
    assert exponential_buckets(1, 10, 4) == (1, 10, 100, 1000)


def test_importing_metrics_loads_no_exposition_library() -> None:
    program = "import sys, kubewright.metrics; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
