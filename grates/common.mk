# Builds a grate. A grate's Makefile sets NAME (and SRCS, if it is not just NAME.c) and includes
# this:
#
#	NAME = geteuid
#	include ../common.mk
#
# `make` installs build/grates/NAME_grate.cwasm, where lind-boot finds it and no program can change
# it, and a copy as lindfs/grates/NAME_grate.cwasm for programs that start grates themselves;
# `make clean` removes both.

ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
SRCS ?= $(NAME).c
HDRS ?= $(wildcard *.h)
SYSROOT ?= $(ROOT)/build/sysroot
LINDFS ?= $(ROOT)/lindfs
LIND_COMPILE ?= $(ROOT)/scripts/lind_compile
CFLAGS ?= -O2
GRATES ?= $(ROOT)/build/grates
OUT = $(GRATES)/$(NAME)_grate.cwasm
COPY = $(LINDFS)/grates/$(NAME)_grate.cwasm
SDK = $(SYSROOT)/lib/liblindgrate.a

install: $(COPY)

$(COPY): $(OUT)
	@mkdir -p $(@D)
	cp $< $(<:.cwasm=.wasm) $(@D)

$(OUT): $(SRCS) $(HDRS) $(SDK)
	@mkdir -p $(@D)
	SYSROOT=$(SYSROOT) $(LIND_COMPILE) --compile-grate -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror $(CFLAGS) $(CPPFLAGS) \
		-o $@ $(SRCS)

$(SDK): $(wildcard $(ROOT)/grates/sdk/c/*/*.[ch] $(ROOT)/grates/sdk/c/include/lind/*.h)
	$(MAKE) -C $(ROOT)/grates/sdk/c install

clean:
	rm -f $(OUT) $(OUT:.cwasm=.wasm) $(COPY) $(COPY:.cwasm=.wasm)

.PHONY: install clean
