"""What carries records: an archive that could harm, or that is not whole, a folder with links; nothing is written outside `results/`."""

import io
import os
import tarfile

import pytest
from factory import tiny

from rtx_core.travel import bring as bringing
from rtx_core.travel import bundle

pytest.register_assert_rewrite("brought")
from brought import record, refused, wrote


@pytest.fixture(autouse=True)
def small(monkeypatch):
    tiny(monkeypatch)


def tar_of(path, *members: tuple[str, bytes], **changes) -> str:
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            for key, value in ({"size": len(data)} | changes).items():
                setattr(entry, key, value)
            tar.addfile(entry, io.BytesIO(data) if entry.size == len(data) else None)
    return str(path)


@pytest.mark.parametrize(("name", "changes", "said"), [
    ("rtx-records/../../evil.json", {}, "expected distinct names inside rtx-records/; nothing of it was taken."),
    ("/etc/passwd", {}, "expected distinct names inside rtx-records/"),
    ("rtx-records//etc/passwd", {}, "expected distinct names inside rtx-records/"),
    ("rtx-records/results/sst2/.hidden.json", {}, "expected distinct names inside rtx-records/"),
    ("rtx-records/results/a.json", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd", "size": 0}, "which is no plain file but a link or a device"),
    ("rtx-records/results/a.json", {"type": tarfile.LNKTYPE, "linkname": "b", "size": 0}, "which is no plain file but a link or a device"),
    ("rtx-records/results/a.json", {"type": tarfile.FIFOTYPE, "size": 0}, "which is no plain file but a link or a device"),
    ("rtx-records/results/a.json", {"size": 2**40}, "of 1,099,511,627,776 bytes as file 1; records are 10,000 files of 67,108,864 bytes at most"),
    ("rtx-records/results/a.json", {}, "has no readable rtx-records/MANIFEST.json; it must be a file that `python -m rtx_core away` wrote."),
])  # fmt: skip
def test_archive_that_could_harm_is_refused(home, tmp_path, name, changes, said):
    refused(home, tar_of(tmp_path / "records.tar", (name, b"{}"), **changes), said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["records.tar"]


def test_archive_is_as_its_manifest_says(home, tmp_path):
    path = tmp_path / "records.tar"
    good = {"results/sst2/a.json": b"{}", "results/sst2/a.npz": b"x"}

    def changed(*members):
        bundle.write(path, bundle.RECORDS, {}, good)
        with tarfile.open(path) as tar:
            manifest = tar.extractfile(f"{bundle.RECORDS}/{bundle.MANIFEST}").read()
        return tar_of(path, (f"{bundle.RECORDS}/{bundle.MANIFEST}", manifest), *((f"{bundle.RECORDS}/{name}", data) for name, data in members))

    refused(home, changed(("results/sst2/a.json", b"[]"), ("results/sst2/a.npz", b"x")), "records.tar is damaged: results/sst2/a.json is not what its manifest says; copy it anew.")
    refused(home, changed(("results/sst2/a.json", b"{}")), "damaged: results/sst2/a.npz")
    refused(home, changed(*good.items(), ("results/sst2/b.json", b"{}")), "damaged: results/sst2/b.json")
    refused(home, changed(*good.items(), ("results/sst2/a.json", b"{}")), "expected distinct names")
    path.write_bytes(path.read_bytes()[:700])
    refused(home, path, "copy it anew.")
    path.write_text("no tar")
    refused(home, path, "cannot be read as a tar")
    for name in ("rtx_core/run.py", "results/sst2/a.py"):
        bundle.write(path, bundle.RECORDS, {}, {name: b""})
        refused(home, path, f"records.tar holds {name}, which is no record or predictions inside results/; nothing of it was taken.")
    bundle.write(path, bundle.RECORDS, {}, {})
    refused(home, path, "holds no records; name the records.tar of another machine")
    refused(home, tmp_path / "nowhere.tar", "There is no ")


def test_folder_with_links_or_strangers_is_refused(home, there, monkeypatch):
    wrote(there, "results/sst2/baseline-seed0", *record())
    (there / "results/sst2/baseline-seed1.json").symlink_to(there / "results/sst2/baseline-seed0.json")
    refused(home, there, "baseline-seed1.json is no plain file but a link or a device; put the file itself there.")
    (there / "results/sst2/baseline-seed1.json").unlink()
    (there / "results/yelp").symlink_to(there / "results/sst2")
    refused(home, there, "yelp is no plain file but a link or a device")
    (there / "results/yelp").unlink()
    (there / "results/sst2/baseline-seed3.npz").write_bytes(b"x")
    refused(home, there, "results/sst2/baseline-seed3.npz has no record beside it; predictions alone say nothing.")
    (there / "results/sst2/baseline-seed3.npz").unlink()
    monkeypatch.setattr(bundle, "LARGEST", 100)
    refused(home, there, "bytes, and a record 100 at most; it is none.")


def test_nothing_is_written_outside_results_nor_in_part(home, there, monkeypatch):
    for seed in (0, 1):
        wrote(there, f"results/sst2/baseline-seed{seed}", *record(seed=seed))
    written = bringing.write_atomically

    def full(path, data):
        if path.is_relative_to(home / "results") and "seed1.json" in path.name:
            raise OSError(28, "No space left on device")
        written(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(bringing, "write_atomically", full)
        refused(home, there, "results/sst2/baseline-seed1.json cannot be written ([Errno 28] No space left on device); make room,")
    (home / "results" / "sst2").rmdir()  # empty
    (home / "elsewhere").mkdir()
    os.symlink(home / "elsewhere", home / "results" / "sst2")
    refused(home, there, "leads out of ")
    assert not list((home / "elsewhere").iterdir())
