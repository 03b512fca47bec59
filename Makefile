# make         sets everything up and shows what memchat does    make chat, make ui   talk to it (ARGS="--user ana")
# make test    sets up what is missing and runs the quick tests (ARGS="-m slow": the slow ones)
# make lint    style, types and the import contract
# make bench-crash, bench-cost   kill -9 (ARGS="--rounds 500"), what a session's end costs; benchmarks/README.md
# make bench-beside  how long a search takes while another process writes
# make bench-switch  a store of 150,000 facts changes its embedding service while others search it
# make lifecycle  how clean the memory keeps itself (ARGS="--model M")    make bench-extract  what a reading finds (DATA=DIR)
# make bench-learn  what the checks and the second look let stand, right and wrong (ARGS="--judges holds,not --reasons")
# make bench-recall  how much of what was said is found again (DATA=DIR)    make bench-answers  and what a model makes of it
# make bench-speed  how fast, beside other stores (ARGS="--sizes 10k/100")
# make bench-notes  how fast many memos are indexed, and what a kill -9 costs (ARGS="--memos 2000")
# make bench-mcp  what the MCP server costs: start, search, memory, many clients (ARGS="--seconds 10")
# make bench-await  how long a search takes beside fifty calls that wait for a model, and a thousand cancelled ones
# make bench-http  what memchat serve adds to a request, beside litellm's proxy, and searches a second
# make bench-backend  a turn of the FastAPI example: 200 people, 20 at a time, beside threads
# make bench-queue  jobs under kill -9, pace of a backfill
# make bench-ui  how quick each action of the app is in a real browser
# make lock    writes the lock files anew from pyproject.toml; with UPGRADE=--upgrade to the newest versions

.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:
.PHONY: demo chat ui test test-postgres bench-beside bench-switch bench-crash bench-cost lifecycle bench-extract bench-learn bench-recall bench-answers bench-speed bench-notes bench-mcp bench-await bench-backend bench-http bench-queue bench-ui lint lock clean

PY ?= python3
BIN := .venv/bin
READY := .venv/.ready
COMPILED := .venv/.compiled

# A virtual environment knows its place: a checkout that was moved is set up again.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

$(READY): requirements.lock model.lock tools/uv.lock.txt tools/setup pyproject.toml
	@PY='$(PY)' HERE='$(CURDIR)' sh tools/setup
	@echo '$(CURDIR)' > $@

# Byte code of everything, in front: tests with a time limit must not share the machine with it.
$(COMPILED): $(READY)
	@echo 'compiling the rest of the packages, once' >&2
	@-$(BIN)/python -m compileall -q -j 0 .venv/lib/python3*/site-packages >/dev/null
	@touch $@

demo: $(READY)
	@$(BIN)/memchat demo $(ARGS)

chat: $(READY)
	@$(BIN)/memchat chat $(ARGS)

ui: $(READY)
	@$(BIN)/memchat ui $(ARGS)

# One thread a test process: pytest already uses every core. The last -m counts. With byte code
# kept, each test file is compiled once, not by each process.
test: $(COMPILED)
	@OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m 'not slow' $(ARGS)

# Tests of every store, with each in PostgreSQL: the server is the one that the tests bring.
test-postgres: $(COMPILED)
	@OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m 'not slow' \
		-p tests.support.on_postgres $(or $(ARGS),tests/db/test_contract.py tests/forget \
		tests/db/test_every_function.py tests/search/test_search.py tests/api/test_import.py \
		tests/api/test_user.py tests/facts/test_consolidation.py tests/facts/test_inbox.py)

bench-crash: $(READY)
	@$(BIN)/python -m benchmarks.crash $(ARGS)

bench-beside: $(READY)
	@$(BIN)/python -m benchmarks.beside_writers $(ARGS)

bench-switch: $(READY)
	@$(BIN)/python -m benchmarks.switch $(ARGS)

bench-cost: $(READY)
	@$(BIN)/python -m benchmarks.extraction_cost

lifecycle: $(READY)
	@$(BIN)/python -m benchmarks.lifecycle $(if $(DATA),--data '$(DATA)') $(ARGS)

bench-extract: $(READY)
	@$(BIN)/python -m benchmarks.extract_quality $(if $(DATA),--data '$(DATA)') $(ARGS)

bench-learn: $(READY)
	@$(BIN)/python -m benchmarks.second_look $(ARGS)

bench-recall: $(READY)
	@$(BIN)/python -m benchmarks.recall --data '$(or $(DATA),data)' $(ARGS)

bench-answers: $(READY)
	@$(BIN)/python -m benchmarks.recall.answered --data '$(or $(DATA),data)' $(ARGS)

bench-speed: $(READY)
	@$(BIN)/python -m benchmarks.speed $(ARGS)

bench-notes: $(READY)
	@$(BIN)/python -m benchmarks.indexing $(ARGS)

bench-mcp: $(READY)
	@$(BIN)/python -m benchmarks.mcp $(ARGS)

bench-await: $(READY)
	@$(BIN)/python -m benchmarks.awaiting $(ARGS)

bench-http: $(READY)
	$(BIN)/python -m benchmarks.over_http $(ARGS)

bench-backend: $(READY)
	@$(BIN)/python -m benchmarks.backend $(ARGS)

bench-queue: $(READY)
	@$(BIN)/python -m benchmarks.queue $(ARGS)

bench-ui: $(READY)
	@$(BIN)/python -m benchmarks.ui $(ARGS)

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

lock:
	@PY='$(PY)' UPGRADE='$(UPGRADE)' sh tools/lock

clean:
	rm -rf .venv
