# Builds a grate in Rust. Its Makefile names it and includes this; its Cargo.toml has the package
# NAME_grate:
#
#	NAME = count
#	include ../rust.mk
#
# `make` installs build/grates/NAME_grate.cwasm, and a copy in lindfs/grates; `make clean` removes
# both. Without Rust's standard library for cages (`make rust`) it says so and builds nothing.

ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
SYSROOT ?= $(ROOT)/build/sysroot
LINDFS ?= $(ROOT)/lindfs
GRATES ?= $(ROOT)/build/grates
RUST = $(ROOT)/build/rust
export CARGO_TARGET_DIR ?= $(ROOT)/build/rust-grates
BUILT = $(CARGO_TARGET_DIR)/wasm32-lind-linux-musl/release/$(NAME)_grate
OUT = $(GRATES)/$(NAME)_grate
COPY = $(LINDFS)/grates/$(NAME)_grate
SDK = $(SYSROOT)/lib/liblindgrate.a

install: $(SDK)
	@if [ ! -f $(RUST)/.key ]; then \
		echo "$(NAME)_grate: not built: it needs Rust for cages: run make rust"; \
	else \
		$(MAKE) --no-print-directory build; \
	fi

# cargo knows what has changed, but not whether the standard library has.
build:
	@[ $(CARGO_TARGET_DIR) -nt $(RUST)/.key ] || rm -rf $(CARGO_TARGET_DIR)
	PATH=$(ROOT)/scripts/bin:$$PATH SYSROOT=$(SYSROOT) cargo lind build -q --release
	@mkdir -p $(dir $(OUT)) $(dir $(COPY))
	@if ! cmp -s $(BUILT) $(OUT).wasm || [ ! -f $(OUT).cwasm ]; then \
		cp $(BUILT) $(OUT).wasm && $(ROOT)/target/release/lind-boot --precompile $(OUT).wasm; \
	fi
	@cp $(OUT).wasm $(OUT).cwasm $(dir $(COPY))

$(SDK): $(wildcard $(ROOT)/grates/sdk/c/*/*.[ch] $(ROOT)/grates/sdk/c/include/lind/*.h)
	$(MAKE) -C $(ROOT)/grates/sdk/c install

clean:
	rm -f $(OUT).cwasm $(OUT).wasm $(COPY).cwasm $(COPY).wasm

.PHONY: install build clean
