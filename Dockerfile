# A container to build, test and measure in: Debian 12 with Rust and what scripts/setup.sh installs.
#
#	docker build -t lind . && docker run --rm -it -v "$PWD":/lind lind make demo
FROM rust:1.95-bookworm

WORKDIR /lind
COPY rust-toolchain.toml ./
COPY scripts/setup.sh scripts/requirements.txt scripts/
RUN scripts/setup.sh && rustup component add clippy rustfmt

CMD ["bash"]
