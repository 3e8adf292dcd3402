# make book    run the quick start and build the book into _build/html; STRICT=1 fails where a sentence does not hold
# make test    run the tests
# make test-all  every test, those of minutes and of other programs too, and why one is skipped
# make lab     open the notebooks in JupyterLab
# make paper   train what is missing or stale, then build the book; make paper DRY=1 shows what and why
# make gpu-hour  the runs that are worth most on one GPU, in three pieces of nine minutes that can be carried on
# make pdf     the paper as _build/paper.pdf, where XeLaTeX is
# make links   look whether the links to other sites lead somewhere; needs a network
# make clean   remove the built book; records, caches, weights and the environment stay
# make help    print this

PYTHON ?= python3

# The environment's programs come first, and its kernel is the one that notebooks run on.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export JUPYTER_PREFER_ENV_PATH := 1
export PYTHONNOUSERSITE := 1
unexport JUPYTER_PATH PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE RTX_STUDY

# Why a build failed stands above.  Then everything is read anew, so that the next does not pass for having nothing to do.
failed = { rm -rf _build/.doctrees; echo "The book could not be built: the first error or warning above says why." >&2; exit 1; }

# What the records at hand do not bear out (book/_ext/values_roles.py), and with STRICT=1 a failure.
told = @if [ -e _build/sentences.txt ]; then cat _build/sentences.txt$(if $(STRICT), >&2; exit 1); fi

.DELETE_ON_ERROR:  # a quick start that stopped halfway is none
.PHONY: help book test test-all lab clean paper pdf links gpu-hour
help:
	@sed -n 's/^# make /make /p' Makefile

_build/quickstart.ipynb: .venv/.installed notebooks/quickstart.ipynb $(shell find rtx_core study -name '*.py')
	mkdir -p _build
	.venv/bin/papermill --kernel python3 --log-output --no-progress-bar notebooks/quickstart.ipynb $@ || \
	  { echo "notebooks/quickstart.ipynb could not be run: its cell and error stand above." >&2; exit 1; }

book: .venv/.installed _build/quickstart.ipynb
	.venv/bin/jupyter-book build book -W -n --keep-going || $(failed)
	.venv/bin/python tests/check_html.py _build/html
	@echo "The book: file://$(CURDIR)/_build/html/index.html"
	$(call told)

test: .venv/.installed
	.venv/bin/python -m pytest -q -n 3 --dist worksteal

# Half an hour more.  What the machine lacks is skipped, and pytest says why: a SLURM of one node (as root: slurmctld, slurmd,
# slurm-client, munge), a browser (chromium, chromium-driver and pip install -e .[browser]), XeLaTeX (as in `pdf` below),
# real texts (RTX_DATA), a built book.
test-all: .venv/.installed .venv-workflow/.installed
	RTX_LONG=1 .venv/bin/python -m pytest -q -rs -o faulthandler_timeout=1800

lab: .venv/.installed
	.venv/bin/python -c 'import jupyterlab' 2>/dev/null || .venv/bin/python -m pip install --quiet -c requirements.lock 'jupyterlab>=4,<5'
	.venv/bin/jupyter lab --notebook-dir .

# What `make book` has executed is not executed again.
pdf: .venv/.installed
	@command -v xelatex >/dev/null && command -v latexmk >/dev/null || { echo "make pdf needs XeLaTeX and latexmk: install TeX Live," \
	  "on Debian or Ubuntu: apt-get install latexmk texlive-xetex texlive-latex-extra texlive-fonts-recommended fonts-freefont-otf" >&2; exit 1; }
	.venv/bin/jupyter-book build book --builder latex -W -n --keep-going || $(failed)
	cd _build/latex && LATEXOPTS= latexmk -xelatex -interaction=nonstopmode -halt-on-error -quiet paper.tex
	cp _build/latex/paper.pdf _build/paper.pdf
	@echo "The paper: file://$(CURDIR)/_build/paper.pdf"
	$(call told)

links: .venv/.installed
	.venv/bin/jupyter-book build book --builder linkcheck

# The workflow; what these variables mean stands in book/reproduce.md.
PROFILE ?= local
GPUS ?= $(shell nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
SLOTS ?= $(GPUS)
MEMORY ?= $(shell .venv/bin/python -c 'import psutil; print(psutil.virtual_memory().total >> 20)')
SOURCE ?= real
THREADS ?= 1
paper: .venv/.installed .venv-workflow/.installed
	.venv-workflow/bin/snakemake --snakefile workflow/Snakefile --directory "$${RTX_HOME:-$(CURDIR)}/_build/paper" \
	  --profile workflow/profiles/$(PROFILE) $(if $(DRY),--dry-run) $(if $(UNLOCK),--unlock) \
	  --resources $(if $(filter local,$(PROFILE)),gpu=$(SLOTS) mem_mb=$(MEMORY),gpu=$(GPUS)) \
	  --config source=$(SOURCE) threads=$(THREADS) gpus=$(GPUS) slots=$(if $(filter local,$(PROFILE)),$(SLOTS),0) \
	  reduced=$(REDUCED) stale=$(STALE) only=$(ONLY) $(OPTIONS)

# Each piece takes on what the one before left unfinished; the files are those of workflow/gpu_hour.py.
gpu-hour: .venv/.installed
	for piece in 1 2 3; do .venv/bin/python workflow/gpu_hour.py --minutes $(or $(MINUTES),9) --together $(or $(TOGETHER),6) || exit; done

clean:
	rm -rf _build/html _build/latex _build/paper.pdf _build/sentences.txt _build/.doctrees _build/outputs _build/jupyter_execute _build/quickstart.ipynb book/figures

# pip would compile all files one after the other, for as long as it installs; some are templates, which cannot be compiled.
.venv/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, and $(PYTHON) is not: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	.venv/bin/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	.venv/bin/python -m pip install --quiet --no-compile -r requirements.lock
	.venv/bin/python -m compileall -q -j 0 .venv/lib >/dev/null || true
	.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	touch $@

.venv-workflow/.installed: requirements-workflow.lock .venv/.installed
	.venv-workflow/bin/python -c '' 2>/dev/null || .venv/bin/python -m venv --clear .venv-workflow
	.venv-workflow/bin/python -m pip install --quiet -r requirements-workflow.lock
	touch $@
