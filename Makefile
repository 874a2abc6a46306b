# Targets that call meson and the scripts of this tree. `make help` lists them.

MESON := $(firstword $(wildcard /usr/bin/meson) meson)
PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)
PREFIX ?= /usr/local
BENCH ?= $(filter-out paper_%,$(patsubst bench/%.c,%,$(shell grep -l '^int main' bench/*.c 2>/dev/null))) grpcio-client dmreverb-client page
RL_BENCH = rl_env rl_update rl_kernel rl_adder rl_dqn rl_pal
PARTS = cross python page grafana
REPRISE = $(CURDIR)/build/release/src/cli/reprise
C_FILES = $(shell find include src rl tests fuzz bench examples python -name '*.[ch]')

.PHONY: all run serve test test-apex-kills test-apex-trouble test-apex-tsan test-long test-pal test-split-machine test-rl-peers test-kubernetes test-slurm test-ray durability bench paper curves wheel deb test-deb test-packages format lint fuzz budget campaign install clean help need-build need-bench test-frameworks

all: build/release/build.ninja  ## build the library, the command, examples and benchmarks; installs missing packages
	@$(MESON) compile -C build/release

build/release/build.ninja: | need-build
	@$(MESON) setup build/release --prefix=$(PREFIX) -Db_lto=true -Dtests=disabled

need-build:
	@tools/need.sh build

need-bench:
	@tools/need.sh bench || echo 'Going on without: benchmarks that need them are skipped.'

run: build/release/build.ninja  ## train Ape-X DQN on CartPole and harder tasks, and watch: localhost:8000
	@$(MESON) compile -C build/release src/cli/reprise:executable
	@mkdir -p build/run && cd build/run && rm -rf try && task=lunarlander && \
	$(REPRISE) train dqn --env lunarlander --steps 16 --dir try --quiet >/dev/null 2>&1 || task=bricks; rm -rf try; \
	exec $(REPRISE) train apex-dqn --env cartpole --then acrobot,$$task --actors 8 --serve localhost:8000 --stay

serve: build/release/build.ninja  ## build a server and start it on localhost:8000
	@$(MESON) compile -C build/release src/cli/reprise:executable
	@echo 'A server with one table, "replay". Try in another terminal:'
	@echo '  curl http://localhost:8000/healthz'
	@echo '  curl http://localhost:8000/v1/info'
	@echo '  curl http://localhost:8000/metrics'
	@echo 'or any Reverb client: reverb.Client("localhost:8000"). Ctrl-C stops it.'
	@exec $(REPRISE) serve --port 8000

test:  ## the tests that every change has to pass, a few minutes; ONLY="asan lint" runs some parts
	@tools/need.sh build test $(if $(ONLY),$(filter $(PARTS),$(ONLY)),$(PARTS))
	@$(PYTHON) tests/run.py $(ONLY)

test-long:  ## every test in every build at full length, lint, planted bugs, wheels: almost an hour
	@tools/need.sh build test wheel deb $(PARTS)
	@$(PYTHON) tests/run.py --long $(ONLY)

test-rl-peers: build/peers/drivers/build.ninja  ## compare environments with Gymnasium's, exported networks in onnxruntime and updates in PyTorch with ours
	@tools/need.sh build test
	@tools/peers.py gymnasium onnx torch
	@$(MESON) compile -C build/peers/drivers dpg_driver env_driver lander_driver onnx_driver sac_driver
	@build/peers/gymnasium/bin/python tests/rl/compare_gymnasium.py build/peers/drivers
	@build/peers/gymnasium/bin/python tests/rl/compare_lander.py build/peers/drivers
	@build/peers/onnx/bin/python tests/rl/compare_onnx.py build/peers/drivers
	@build/peers/torch/bin/python tests/rl/compare_dpg.py build/peers/drivers
	@build/peers/torch/bin/python tests/rl/compare_sac.py build/peers/drivers

test-slurm: build/release/build.ninja  ## run an exported job on a real Slurm on this host; needs slurmctld, slurmd and root
	@$(MESON) compile -C build/release src/cli/reprise:executable
	@$(PYTHON) tests/cluster/slurm.py build/release/src/cli/reprise

test-kubernetes: build/release/build.ninja  ## check exported manifests against the schemas of Kubernetes; fetches them
	@$(MESON) compile -C build/release src/cli/reprise:executable
	@tools/peers.py kubernetes
	@RP_BUILD=$(CURDIR)/build/release build/peers/kubernetes/bin/python -m pytest -q -p no:cacheprovider tests/cli/test_export.py

test-ray:  ## run a program on a real Ray cluster of three nodes, and kill some of them; fetches Ray
	@tools/need.sh build test
	@tools/peers.py ray
	@$(PYTHON) tests/cluster/run_ray.py

test-frameworks:  ## train with our replay buffer in Stable-Baselines3 and others; fetches 5 GB; ONLY=stable_baselines3
	@tools/need.sh build test
	@tools/peers.py buffers
	@$(PYTHON) tests/frameworks/run.py $(ONLY)

build/peers/drivers/build.ninja: | need-build
	@$(MESON) setup build/peers/drivers -Dtests=enabled

test-apex-kills: all  ## kill 100 random parts of an Ape-X training in processes; KILLS=1000 SEED=2 SHARDS=2
	@$(PYTHON) tests/cli/apex_kills.py $(REPRISE) --kills $(or $(KILLS),100) --seed $(or $(SEED),1) --shards $(or $(SHARDS),1)

test-apex-trouble: all  ## cut the network of an Ape-X training, stop and lose its parts, fill its disk: some 8 minutes; needs root; AWAY=20
	@tools/need.sh build test
	@cd tests/cluster && REPRISE=$(abspath $(REPRISE)) AWAY=$(or $(AWAY),60) \
		$(PYTHON) -m pytest -v -s -p no:cacheprovider test_trouble.py

test-apex-tsan:  ## train Ape-X under ThreadSanitizer, in threads and as processes: some 10 minutes
	@tools/need.sh build test
	@$(PYTHON) tests/rl/apex_tsan.py

test-pal: all  ## train with one and with several learners, 10 seeds each, and compare what they learn: some minutes
	@$(PYTHON) tests/rl/pal_learners.py $(REPRISE)

test-split-machine: need-build  ## measure agents here, and simulate picks of threads on 64 such cores: half a minute on quiet cores
	@tools/need.sh build test
	@test -e build/split/build.ninja || $(MESON) setup build/split -Dtests=enabled -Dprograms=false -Donly_tests=unit_rl_pal
	@$(MESON) compile -C build/split reprise:executable test_unit_rl_pal
	@$(PYTHON) tests/rl/split_machine.py build/split

durability:  ## test a million power cuts, 10,000 kills and a flip of every bit; SECONDS=600 stops early
	@tools/need.sh build test
	@$(PYTHON) tests/durability/long.py $(if $(SECONDS),--seconds $(SECONDS)) \
		$(if $(AT_ONCE),--at-once $(AT_ONCE)) $(ONLY)

bench: need-bench all  ## run the benchmarks; BENCH=name for one, BENCH=rl for all of rl, QUICK=1 for a short run
	@set -e; for b in $(patsubst rl,$(RL_BENCH),$(BENCH)); do case $$b in \
	*-client) $(PYTHON) bench/$${b%-client}_client.py $(if $(QUICK),--quick) ;; \
	python) $(PYTHON) bench/python_buffers.py $(if $(QUICK),--quick) ;; \
	frameworks) $(PYTHON) bench/frameworks.py $(if $(QUICK),--quick) ;; \
	transfer_queue) $(PYTHON) bench/transfer_queue_storage.py $(if $(QUICK),--quick) ;; \
	pal_tree) $(PYTHON) bench/pal_tree.py $(if $(QUICK),--quick) ;; \
	durable) build/release/bench/bench_durable $(if $(QUICK),--quick); \
		$(PYTHON) bench/durable_pause.py $(if $(QUICK),--quick) ;; \
	rl_kernel) OPENBLAS_CORETYPE=$(if $(shell grep -m1 -o avx512f /proc/cpuinfo),SkylakeX,Haswell) \
		build/release/bench/bench_rl_kernel $(if $(QUICK),--quick); \
		OPENBLAS_CORETYPE=Haswell build/release/bench/bench_rl_kernel $(if $(QUICK),--quick) avx2 ;; \
	rl_env) $(PYTHON) bench/rl_env.py $(if $(QUICK),--quick) ;; \
	rl_dqn) $(PYTHON) bench/rl_dqn.py $(if $(QUICK),--quick) ;; \
	rl_update) $(PYTHON) bench/rl_update_torch.py $(if $(QUICK),--quick) ;; \
	apex) $(PYTHON) bench/apex.py $(if $(QUICK),--quick) ;; \
	page) $(PYTHON) bench/page.py $(if $(QUICK),--quick) ;; \
	dmreverb) $(PYTHON) bench/dmreverb.py $(if $(QUICK),--quick) ;; \
	*) build/release/bench/bench_$$b $(if $(QUICK),--quick) ;; esac; done

paper: all  ## measure figures 5, 6 and 7 of the Reverb paper: a CSV file and a plot in build/paper
	@$(PYTHON) bench/paper_figures.py $(if $(QUICK),--quick)

.PHONY: site
site:  ## make a site of the documents, the headers and the docstrings, in build/site; fetches mkdocs
	@tools/need.sh test
	@tools/peers.py site
	@build/peers/site/bin/python tools/site.py

.PHONY: paper-apex
paper-apex: build/release/build.ninja  ## measure the findings of the Ape-X paper in small, 10 seeds each: a table and a plot in build/paper-apex
	@$(MESON) compile -C build/release bench/bench_paper_apex:executable
	@$(PYTHON) bench/paper_apex.py $(if $(QUICK),--quick)

.PHONY: paper-pal
paper-pal: all  ## measure the figures of the paper on parallel actors and learners: CSV, plots, tables in build/paper-pal; STEP=fig9
	@$(PYTHON) bench/paper_pal.py $(if $(QUICK),--quick) $(STEP)

curves: all  ## train with the seeds of docs/agents/dqn.md, dpg.md and sac.md: times, and curves in build/curves; ENV=cartpole
	@$(PYTHON) tools/curves.py $(ENV)

wheel:  ## build wheels for CPython 3.9 to 3.14 in build/wheels, and try them; MACHINE=both PYTHONS="3.11 3.12"
	@tools/need.sh build wheel $(if $(filter-out $(shell uname -m),$(MACHINE)),cross)
	@$(PYTHON) tools/wheel.py $(if $(MACHINE),--machine $(MACHINE)) $(PYTHONS)

deb:  ## build Debian packages of server, library and headers, in build/deb
	@tools/need.sh build deb
	@$(PYTHON) tools/deb.py

test-deb: deb  ## install the packages of `make deb` into a clean Debian, and run the service; needs root
	@$(PYTHON) tests/packages/deb.py

test-packages:  ## check the files of the image, of the hosted CI and of CITATION.cff; fetches the linters
	@tools/need.sh build test
	@tools/peers.py linters
	@build/peers/linters/bin/python -m pytest -q -p no:cacheprovider tests/packages

format:  ## format the C sources with clang-format
	@clang-format -i $(C_FILES)

lint:  ## check with clang-format, clang-tidy and the rules about layers, names and sizes
	@tools/need.sh build test
	@$(PYTHON) tests/run.py format lint meta

fuzz:  ## fuzz every decoder, or only FUZZ=target, for RUNS=10000000 or SECONDS=60
	@$(PYTHON) tools/fuzz.py $(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS)) $(FUZZ)

budget: all  ## check resident memory against the formula in docs/operations.md; SECONDS=30 for each load
	@RP_BUILD=build/release $(PYTHON) tests/attack/budget.py $(if $(SECONDS),--seconds $(SECONDS))

campaign:  ## test against the models with random operations for hours, then fuzz for hours
	@$(PYTHON) tests/run.py --long --suite property --scale 50 --timeout 14400 release asan tsan
	@$(PYTHON) tools/fuzz.py --seconds 3600

install: build/release/build.ninja  ## install into PREFIX (default /usr/local), below DESTDIR if that is set
	@$(MESON) setup --reconfigure build/release --prefix=$(PREFIX) >/dev/null
	@$(MESON) compile -C build/release $$($(PYTHON) tools/installed.py build/release)
	@$(MESON) install -C build/release --no-rebuild

clean:  ## remove everything that was built
	@rm -rf build

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
