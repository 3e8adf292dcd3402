# make book    run the quick start and build the book into _build/html
# make test    run the tests
# make clean   remove the built book; records, caches, weights and the environment stay
# make help    print this

PYTHON ?= python3

# The environment's programs come first, and its kernel is the one that notebooks run on.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export JUPYTER_PREFER_ENV_PATH := 1
export PYTHONNOUSERSITE := 1
unexport JUPYTER_PATH PYTHONHOME PYTHONPATH

.PHONY: help book test clean
help:
	@sed -n 's/^# make /make /p' Makefile

book: .venv/.installed
	mkdir -p _build
	.venv/bin/papermill --kernel python3 --log-output --no-progress-bar notebooks/quickstart.ipynb _build/quickstart.ipynb
	@# After a warning everything is read anew, so that the next build does not pass for having nothing to do.
	.venv/bin/jupyter-book build book -W -n --keep-going || { rm -rf _build/.doctrees; exit 1; }
	.venv/bin/python tests/check_html.py _build/html
	@echo "The book: file://$(CURDIR)/_build/html/index.html"

test: .venv/.installed
	.venv/bin/python -m pytest -q

clean:
	rm -rf _build/html _build/.doctrees _build/jupyter_execute _build/quickstart.ipynb book/figures

.venv/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, and $(PYTHON) is not: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	.venv/bin/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	.venv/bin/python -m pip install --quiet -r requirements.lock
	.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	touch $@
