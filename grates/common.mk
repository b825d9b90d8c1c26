# Builds a grate. A grate's Makefile sets NAME (and SRCS, if it is not just NAME.c) and includes this:
#
#	NAME = geteuid
#	include ../common.mk
#
# `make` installs lindfs/grates/NAME_grate.cwasm; `make clean` removes it.

ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
SRCS ?= $(NAME).c
HDRS ?= $(wildcard *.h)
SYSROOT ?= $(ROOT)/build/sysroot
LINDFS ?= $(ROOT)/lindfs
LIND_COMPILE ?= $(ROOT)/scripts/lind_compile
CFLAGS ?= -O2
OUT = $(LINDFS)/grates/$(NAME)_grate.cwasm
SDK = $(SYSROOT)/lib/liblindgrate.a

install: $(OUT)

$(OUT): $(SRCS) $(HDRS) $(SDK)
	@mkdir -p $(@D)
	SYSROOT=$(SYSROOT) $(LIND_COMPILE) --compile-grate -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror $(CFLAGS) $(CPPFLAGS) \
		-o $@ $(SRCS)

$(SDK): $(wildcard $(ROOT)/grates/sdk/c/*/*.[ch] $(ROOT)/grates/sdk/c/include/lind/*.h)
	$(MAKE) -C $(ROOT)/grates/sdk/c install

clean:
	rm -f $(OUT) $(OUT:.cwasm=.wasm)

.PHONY: install clean
