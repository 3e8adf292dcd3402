"""One folder to deposit, for instance at Zenodo, which gives it a DOI: `make bundle`, after `make book`.

_build/bundle then holds the repository at this commit, with records and weights, the built pages, the paper as a PDF
where `make pdf` has made it, and two logbooks that need no program: every prediction with the words written before the
runs and its verdict, and every statement of the documents that are rebuilt, with its outcome.
ro-crate-metadata.json describes them (RO-Crate 1.1).
"""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY, write_atomically
from study import paper
from study.claims import Sources, judged
from study.predictions import Prediction, predictions

TITLE = "Is a Second Pass Worth a Second Layer? Looped and Standard Transformers Compared"
PARTS = {  # file -> (media type, what it is)
    "source.tar.gz": ("application/gzip", "The repository: code, notebooks, records of all runs, kept weights"),
    "book.tar.gz": ("application/gzip", "The built pages; open index.html"),
    "paper.pdf": ("application/pdf", "The pages as one document"),
    "predictions.md": ("text/markdown", "What was expected before the runs, and what became of it"),
    "claims.csv": ("text/csv", "Statements of the rebuilt documents, and whether the records bear them out"),
}


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.strip()


def logbook(rows: Iterable[Prediction]) -> str:
    """Markdown: a section for each prediction."""
    sections = ["# Predictions"]
    for prediction in rows:
        row = {key: " ".join(str(value).split()) for key, value in prediction.row.items()}
        sections += [f"## {row['short']}", f"Written on {row['written']}. Verdict: {prediction.verdict}."]
        sections += [f"*Experiment.* {row['experiment']}", f"*Expected.* {row['says']}"]
        sections += [f"*Contradicted by.* {row['contradicted_by']}", f"*Known then.* {row['from']}"]
    return "\n\n".join(sections) + "\n"


def crate(folder: Path, commit: str, day: str) -> dict:
    """The metadata of the parts that lie in a folder."""
    files = []
    for name, (media, description) in PARTS.items():
        if (path := folder / name).exists():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            entry = {"@id": name, "@type": "File", "name": description, "encodingFormat": media}
            files.append(entry | {"contentSize": str(path.stat().st_size), "sha256": digest})
    root = {"@id": "./", "@type": "Dataset", "name": TITLE, "version": commit, "datePublished": day}
    root |= {"description": "Code, records, weights and pages of a comparison of looped and standard transformers."}
    root |= {"license": {"@id": "https://spdx.org/licenses/MIT"}, "hasPart": [{"@id": file["@id"]} for file in files]}
    metadata = {"@id": "ro-crate-metadata.json", "@type": "CreativeWork", "about": {"@id": "./"}}
    metadata["conformsTo"] = {"@id": "https://w3id.org/ro/crate/1.1"}
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": [metadata, root, *files]}


def main() -> None:
    built, folder = REPOSITORY / "_build", REPOSITORY / "_build" / "bundle"
    if not (built / "html" / "index.html").exists():
        raise RtxError("There is no built book; type: make book")
    if git("status", "--porcelain"):
        raise RtxError("There are changes that are not committed; commit them, so that the bundle names its code.")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    git("archive", "--format=tar.gz", "--prefix=source/", f"--output={folder / 'source.tar.gz'}", "HEAD")
    shutil.make_archive(str(folder / "book"), "gztar", built, "html")
    if (built / "paper.pdf").exists():
        shutil.copy(built / "paper.pdf", folder)
    write_atomically(folder / "predictions.md", logbook(predictions().values()).encode())
    write_atomically(folder / "claims.csv", judged(Sources(**paper.claim_sources())).to_csv(index=False).encode())
    metadata = crate(folder, git("rev-parse", "HEAD"), git("show", "--no-patch", "--format=%cs", "HEAD"))
    write_atomically(folder / "ro-crate-metadata.json", json.dumps(metadata, indent=1, ensure_ascii=False).encode())
    print(f"The bundle: {folder}")


if __name__ == "__main__":
    try:
        main()
    except RtxError as error:
        sys.exit(str(error))
