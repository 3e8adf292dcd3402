# make book    run the quick start and build the book into _build/html; STRICT=1 fails where a sentence does not hold
# make test    run the tests
# make types   check the types of the library, of the study and of a script that uses them
# make test-all  every test, those of minutes and of other programs too, and why one is skipped
# make lab     open the notebooks in JupyterLab
# make paper   train what is missing or stale, then build the book; make paper DRY=1 shows what and why
# make gpu-hour  the runs that are worth most on one GPU, in three pieces of nine minutes that can be carried on
# make pdf     the paper as _build/paper.pdf, where XeLaTeX is
# make bundle  one folder to deposit: source, records, weights, built book and logbooks, described as an RO-Crate
# make slides  six figures of the built book, each with one sentence, as _build/slides.pdf
# make links   look whether the links to other sites lead somewhere; needs a network
# make clean   remove the built book; records, caches, weights and the environment stay
# make help    print this

PYTHON ?= python3

# The environment's programs come first, and its kernel is the one that notebooks run on; it is made by a Python outside of it.
outside := PATH="$(subst $(CURDIR)/.venv/bin:,,$(PATH))"
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export JUPYTER_PREFER_ENV_PATH := 1
export PYTHONNOUSERSITE := 1
unexport JUPYTER_PATH PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE RTX_STUDY

failed = { echo "The book could not be built: the first error or warning above says why." >&2; exit 1; }

# What the records at hand do not bear out (book/_ext/sentences.py), and with STRICT=1 a failure.
told = @if [ -e _build/sentences.txt ]; then cat _build/sentences.txt$(if $(STRICT), >&2; exit 1); fi

.PHONY: help book test types test-all lab clean paper pdf bundle slides links gpu-hour whole anew
help:
	@sed -n 's/^# make /make /p' Makefile

# Jupyter Book reads what lies in book/, and some ways of copying (a zip, git on Windows) lose its two links.
whole:
	@for name in _toc.yml notebooks; do \
	  if [ -L book/$$name ]; then continue; fi; \
	  if [ ! -e book/$$name ] || [ "$$(cat book/$$name 2>/dev/null)" = ../$$name ]; then \
	    rm -f book/$$name; kind=link; ln -s ../$$name book/$$name 2>/dev/null || { kind=copy; cp -R $$name book/$$name; }; \
	    echo "book/$$name was no link to $$name, as after unpacking some zips; now it is a $$kind."; \
	  elif ! diff -rq -x .ipynb_checkpoints $$name book/$$name >/dev/null; then \
	    echo "book/$$name is a copy of $$name, and the two differ; keep what you need in $$name, and type: rm -r book/$$name" >&2; exit 1; \
	  fi; \
	done

# papermill writes as it runs, so what was stopped halfway has another name.
_build/quickstart.ipynb: .venv/.installed notebooks/quickstart.ipynb $(shell find rtx_core study -name '*.py')
	mkdir -p _build
	.venv/bin/papermill --kernel python3 --log-output --no-progress-bar notebooks/quickstart.ipynb _build/quickstart.part.ipynb || \
	  { echo "notebooks/quickstart.ipynb could not be run: its cell and error stand above." >&2; exit 1; }
	mv _build/quickstart.part.ipynb $@

book: whole .venv/.installed _build/quickstart.ipynb
	.venv/bin/jupyter-book build book -W -n --keep-going || $(failed)
	.venv/bin/python tests/check_html.py _build/html
	@echo "The book: file://$(CURDIR)/_build/html/index.html"
	$(call told)

test: .venv/.installed
	.venv/bin/python -m pytest -q -n 3 --dist worksteal

types: .venv/.installed
	.venv/bin/basedpyright --pythonpath .venv/bin/python

# Half an hour more.  What the machine lacks is skipped, and pytest says why: a SLURM of one node (as root: slurmctld, slurmd,
# slurm-client, munge), a browser (chromium, chromium-driver and pip install -e .[browser]), XeLaTeX (as in `pdf` below),
# real texts (RTX_DATA), a built book, a package index.
test-all: .venv/.installed .venv-workflow/.installed
	RTX_LONG=1 .venv/bin/python -m pytest -q -rs -o faulthandler_timeout=1800

lab: .venv/.installed
	.venv/bin/python -c 'import jupyterlab, jupyterlab_myst' 2>/dev/null || .venv/bin/python -m pip install --quiet -c requirements.lock 'jupyterlab>=4,<5' 'jupyterlab-myst>=2.7,<3'
	.venv/bin/jupyter lab --notebook-dir .

# What `make book` has executed is not executed again.
pdf: whole .venv/.installed
	@command -v xelatex >/dev/null && command -v latexmk >/dev/null || { echo "make pdf needs XeLaTeX and latexmk: install TeX Live," \
	  "on Debian or Ubuntu: apt-get install latexmk texlive-xetex texlive-latex-extra texlive-fonts-recommended fonts-freefont-otf" >&2; exit 1; }
	.venv/bin/jupyter-book build book --builder latex -W -n --keep-going || $(failed)
	cd _build/latex && LATEXOPTS= latexmk -xelatex -interaction=nonstopmode -halt-on-error -quiet paper.tex
	cp _build/latex/paper.pdf _build/paper.pdf
	@echo "The paper: file://$(CURDIR)/_build/paper.pdf"
	$(call told)

bundle: .venv/.installed
	.venv/bin/python workflow/bundle.py

slides: .venv/.installed
	.venv/bin/python workflow/slides.py

links: whole .venv/.installed
	.venv/bin/jupyter-book build book --builder linkcheck

# The workflow; what these variables mean stands in book/reproduce.md.
PROFILE ?= local
GPUS ?= $(shell nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
SLOTS ?= $(GPUS)
MEMORY ?= $(shell .venv/bin/python -c 'import os; print(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20)')
SOURCE ?= real
THREADS ?= 1
paper_folder = "$${RTX_HOME:-$(CURDIR)}/_build/paper"
paper: .venv/.installed .venv-workflow/.installed
	.venv-workflow/bin/python -m snakemake --snakefile workflow/Snakefile --directory $(paper_folder) \
	  --profile workflow/profiles/$(PROFILE) $(if $(DRY),--dry-run) $(if $(UNLOCK),--unlock) \
	  --resources $(if $(filter local,$(PROFILE)),gpu=$(SLOTS) mem_mb=$(MEMORY),gpu=$(GPUS)) \
	  --config source=$(SOURCE) threads=$(THREADS) gpus=$(GPUS) slots=$(if $(filter local,$(PROFILE)),$(SLOTS),0) \
	  reduced=$(REDUCED) stale=$(STALE) only=$(ONLY) $(OPTIONS) || { [ ! "$$(ls $(paper_folder)/.snakemake/locks 2>/dev/null)" ] || \
	  echo "Another \`make paper\` runs here; where none does, one that was killed left its lock: make paper UNLOCK=1" >&2; exit 1; }

# Each piece takes on what the one before left unfinished; the files are those of workflow/gpu_hour.py.
gpu-hour: .venv/.installed
	for piece in 1 2 3; do .venv/bin/python workflow/gpu_hour.py --minutes $(or $(MINUTES),9) --together $(or $(TOGETHER),6) || exit; done

clean:
	rm -rf _build/html _build/latex _build/paper.pdf _build/sentences.txt _build/.doctrees _build/outputs _build/jupyter_execute _build/quickstart.ipynb book/figures

# An environment that does not run here (its Python is gone, the folder has moved), or is of another Python than PYTHON=… names, is
# made anew; a plain `make` takes the one that is there.
version = $(shell $(outside) $1 -c 'import sys; print(sys.version)' 2>/dev/null)
here := .venv/bin/python -c "" 2>/dev/null && grep -qsFx "$$(pwd -P)" .venv/lib/python*/site-packages/*rtx_core*.pth
ANEW := $(shell [ ! -e .venv/.installed ] || { $(here); } || echo anew)
ifneq ($(origin PYTHON),file)
ifneq ($(call version,$(PYTHON)),$(call version,.venv/bin/python))
ANEW := anew
endif
endif
.venv/.installed: requirements.lock pyproject.toml $(ANEW)
.venv-workflow/.installed: requirements-workflow.lock .venv/.installed

# A folder's .lock says "unfinished" while an environment is made, so that one that was stopped is made anew and not taken as it is.
begin = @[ ! "$(ANEW)" ] && [ ! -s $1.lock ] && $1/bin/python -m pip --version >/dev/null 2>&1; usable=$$?; \
  echo unfinished >$1.lock; rm -f $1/.installed; [ $$usable = 0 ] || $(outside) $2 -m venv --clear $1
end = @touch $1/.installed && : >$1.lock

# One `make` at a time makes it, and another waits and then finds it made; macOS has no `flock`, so there do not start two first builds.
ifneq ($(if $(LOCKED),,$(shell command -v flock 2>/dev/null || :)),)
.venv/.installed .venv-workflow/.installed:
	@flock -n $(@D).lock true || echo "Another make works on $(@D); this one waits for it."
	@flock $(@D).lock $(MAKE) --no-print-directory LOCKED=1 $@
else
# Python compiles what it imports, a quarter of the files; a new pip takes half the time of the one that comes with Python 3.11.
.venv/.installed:
	@$(outside) $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, and $(PYTHON) is not: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(call begin,.venv,$(PYTHON))
	.venv/bin/python -m pip install --quiet --no-compile --upgrade pip
	.venv/bin/python -m pip install --quiet --no-compile -r requirements.lock
	.venv/bin/python -m pip install --quiet --no-compile --no-deps --no-build-isolation -e .
	$(call end,.venv)

.venv-workflow/.installed:
	$(call begin,.venv-workflow,.venv/bin/python)
	.venv-workflow/bin/python -m pip install --quiet -r requirements-workflow.lock
	$(call end,.venv-workflow)
endif
