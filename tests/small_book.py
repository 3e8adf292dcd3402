"""Small books that tests build by the extensions of this one."""

from pathlib import Path

from sphinx.testing.util import SphinxTestApp


def build_book(source: Path, *extensions: str, builder: str = "html", **settings) -> Path:
    """The folder of what was built, without a warning."""
    usual = {"extensions": ["myst_nb", *extensions], "myst_enable_extensions": ["colon_fence"], "numfig": True}
    usual |= {"nb_execution_mode": "off", "suppress_warnings": ["mystnb.nbcell"], "exclude_patterns": ["_build"]}
    (source / "conf.py").write_text("")
    app = SphinxTestApp(builder, srcdir=source, confoverrides=usual | settings)
    app.build()
    app.cleanup()
    warnings = app.warning.getvalue().splitlines()
    told = [line for line in warnings if "already registered" not in line]  # by other tests
    assert not told, told
    return app.outdir
