# Builds, tests and measures. `make help` lists the targets.

# The runner starts faster without a dynamic linker and at a fixed address: a small program takes a
# quarter less time.
STATIC = -C target-feature=+crt-static -C relocation-model=static
ARGS =
PORT =
LAYER =
PREFIX = /usr/local
DESTDIR =

all: programs sysroot cxx profile grates ## everything: the runtime, the C and C++ libraries, the grates

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## installs what is missing (Debian 12, root or sudo)
	@scripts/setup.sh

programs: ## the runtime's programs, in target/release
	cargo build --release -p lind-passes
	cargo rustc --release -p lind-boot --bin lind-boot -- $(STATIC)
	cargo rustc --release -p lind-oci --bin lind-oci -- $(STATIC)
	@# The linker writes through a mapping, page by page. A copy lies in the host's memory in larger pieces, which starts map faster.
	@cp target/release/lind-boot target/release/.lind-boot && mv -f target/release/.lind-boot target/release/lind-boot

sysroot: ## the cages' C library, in build/sysroot
	@src/sysroot/build.sh

cxx: programs sysroot ## the cages' C++ library, in build/sysroot
	@src/sysroot/cxx.sh

profile: programs sysroot ## what -fprofile-generate links, in build/sysroot
	@src/sysroot/profile.sh

rust: programs sysroot cxx ## Rust's standard library for cages, in build/rust; not part of all
	@src/sysroot/rust.sh

grates: programs sysroot ## the grates, in build/grates
	@$(MAKE) --no-print-directory -C grates/sdk/c install
	@$(MAKE) --no-print-directory -C grates install

ports: all ## shells, tools, languages into lindfs/bin, compiled; PORT="bash make" selects
	@ports/build.sh $(PORT); built=$$?; target/release/lind-boot warm lindfs/bin && exit $$built

tools: programs sysroot grates ## bash and busybox into lindfs/bin: what the examples of the documents call
	@ports/build.sh busybox bash lind-why && target/release/lind-boot warm lindfs/bin

# tests/agent-day compares them with Linux's, and is skipped without them.
gnu-tools: tools ## GNU's coreutils, grep and others into lindfs/bin: tests want them beside those of tools
	@ports/build.sh coreutils diffutils findutils gawk grep sed tzdata && target/release/lind-boot warm lindfs/bin

demo: ## builds what it needs, and shows what Lind does; about 20 minutes the first time
	@scripts/demo.sh

binfmt: all ## Linux starts programs for cages by itself, on the whole machine, as root; scripts/binfmt unregister ends it
	@scripts/binfmt register

image: all ## the tools as OCI images, in build/images; LAYER=base builds the first of three layers alone
	@scripts/image.py $(LAYER)

oci-test: all tools ## podman, containerd and others' suites with lind-oci, as root: installs them, prints a table (20 minutes); ARGS=podman selects
	@tests/oci/engines/run $(ARGS)

node-suite: all ## node's own test files in a cage, by module, into ports/node/README.md; takes half an hour
	@ports/build.sh node && ports/node/suite --table ports/node/README.md $(ARGS)

wheel: all ## the Python package with an image, in dist; PORT="bash busybox" selects the image's ports, FULL=1 adds the whole image
	@scripts/wheel.py $(if $(FULL),--full) $(PORT)

sdk-test: wheel ## the adapters and servers of the Python package, each with its framework or client from PyPI (10 minutes, the wheel aside); ARGS=deepagents selects
	@scripts/sdk_test.py $(ARGS)

install: ## what was built into PREFIX, below DESTDIR: runtime, compiler driver, C library, grates, lindfs
	@scripts/install.sh install "$(DESTDIR)" "$(PREFIX)"

dist: ## a release of what was built, in dist, with SHA256SUMS of it and of the wheels there
	@scripts/dist.sh

uninstall: ## removes that
	@scripts/install.sh uninstall "$(DESTDIR)" "$(PREFIX)"

ports-test: all ## the same, and runs the ports' own tests on Linux and in a cage
	@ports/build.sh --test $(PORT)

test: setup ## every test, about an hour the first time; ARGS=fs selects
	@echo "test: builds what is not built (about 20 minutes the first time), then lints and unit tests (10), then scripts/test.py (30)"
	@# The runtime ends with a link of which parts take one processor: lints and unit tests are compiled meanwhile.
	@$(MAKE) --no-print-directory -j2 all check unit-tests
	@# Many tests of sandboxes need a shell and its tools, and some want GNU's. Configuring these occupies one processor.
	@$(MAKE) --no-print-directory -j2 gnu-tools run-unit-tests
	scripts/test.py $(ARGS)

quick: ## lints and the tests of what changed, in under five minutes after a build; ARGS=COMMIT compares with that
	scripts/quick.py $(ARGS)

fuzz: ## feeds readers with inputs that libFuzzer makes, a minute each; ARGS=overlay selects, TIME=600 seconds
	fuzz/run --time $(or $(TIME),60) $(ARGS)

readme-test: setup ## types all that README.md and docs/ say, in a fresh clone with an empty home; takes hours
	tests/readme/run --fresh

# System calls go past the engine's trampoline by default: its tests run with it, too.
WITHOUT_TRAMPOLINE = --workspace --no-default-features --test filters --test grates --test run

unit-tests: check
	cargo test --workspace --no-run
	cargo test $(WITHOUT_TRAMPOLINE) --no-run

run-unit-tests:
	cargo test --workspace
	cargo test $(WITHOUT_TRAMPOLINE)

bench: setup all tools ## the benchmark table; ARGS='fs_read -o result.json' selects and saves
	scripts/benchrunner.py $(ARGS)
	@[ -n "$(ARGS)" ] || scripts/packagebench.py

sandbench: all ## lind-boot run beside other sandboxes; ARGS='-q --rows true,echo -o results'
	scripts/sandbench.py $(ARGS)

check: ## formatting, lints, generated files, language
	cargo fmt --all --check
	cargo fmt --manifest-path grates/sdk/rust/Cargo.toml --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo run -q -p lind-abigen -- --check
	src/sysroot/functions.py --check
	python/generate.py --check
	tests/docs/language.py
	scripts/lint/run
	@scripts/newer_patch.sh

deny: ## licences and sources of dependencies, by cargo-deny, which it builds first (4 minutes)
	@[ -x build/lint/bin/cargo-deny ] || cargo install --locked cargo-deny@0.20.2 --root build/lint
	@PATH="$(CURDIR)/build/lint/bin:$$PATH" cargo deny check licenses bans sources

clean: ## removes what was built
	cargo clean
	rm -rf build
	$(MAKE) --no-print-directory -C grates clean

.PHONY: all help setup tools gnu-tools node-suite oci-test demo quick fuzz programs sysroot cxx profile rust grates binfmt ports ports-test test readme-test unit-tests run-unit-tests bench sandbench check deny clean image wheel dist sdk-test install uninstall
