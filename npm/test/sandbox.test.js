// The package against sessions of the lind-boot that LIND_BOOT names.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { bundled } from "../dist/images.js";
import { CommandError, CommandNotStarted, FileError, RequestError, Sandbox, SandboxError, TimeoutExpired, program, run } from "../dist/index.js";

let folder;
let sandbox;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "lind-node-"));
  writeFileSync(join(folder, "old"), "old\n");
  sandbox = new Sandbox({ volumes: { [folder]: "/project:overlay" }, workdir: "/project", env: { FROM: "sandbox" } });
});

after(async () => {
  await sandbox.close();
  rmSync(folder, { recursive: true });
});

const code = (expected) => (error) => error instanceof FileError && error.code === expected;

test("commands end as they do, with their output", async () => {
  const result = await sandbox.run('echo "$FROM $MINE"; echo errors >&2; exit 3', { env: { MINE: "m" } });
  assert.deepEqual([result.exitCode, result.ok, result.signal, result.stdout, result.stderr], [3, false, null, "sandbox m\n", "errors\n"]);
  assert.equal((await sandbox.run(["echo", "it's", "$X"])).stdout, "it's $X\n");
  assert.equal((await sandbox.run(["printf", Buffer.from([255])])).stdoutBytes[0], 255);
  assert.equal((await sandbox.run("kill -9 $$")).signal, 9);
  assert.equal((await sandbox.run("pwd", { cwd: "/tmp" })).stdout, "/tmp\n");
  await assert.rejects(sandbox.run("exit 4", { check: true }), (error) => error instanceof CommandError && error.result.exitCode === 4);
  await assert.rejects(sandbox.run(["no-such-program"]), (error) => error instanceof CommandNotStarted && error.status === 127);
});

test("much input and output goes through, and what is too much is counted", async () => {
  const data = Buffer.alloc(5_000_000, "0123456789abcde\n");
  const seen = [];
  const whole = await sandbox.run(["cat"], { input: data, onStdout: (piece) => seen.push(piece.length) });
  assert.ok(whole.stdoutBytes.equals(data));
  assert.equal(seen.reduce((sum, length) => sum + length, 0), data.length);
  const part = await sandbox.run(["cat"], { input: data, maxOutput: 1000 });
  assert.deepEqual([part.stdoutBytes.length, part.dropped], [1000, data.length - 1000]);
  // The command does not read it.
  assert.equal((await sandbox.run("exit 5", { input: data })).exitCode, 5);
});

test("many at once do not disturb each other", async () => {
  const all = Array.from({ length: 30 }, (_, at) => sandbox.run(`echo ${at}; exit ${at}`));
  for (const [at, result] of (await Promise.all(all)).entries()) assert.deepEqual([result.exitCode, result.stdout], [at, `${at}\n`]);
});

test("a command that takes too long is killed", async () => {
  const late = sandbox.run("echo begun; sleep 100", { timeout: 0.5 });
  await assert.rejects(late, (error) => error instanceof TimeoutExpired && error.result.stdout === "begun\n");
});

test("a process is written to, read, signalled and closed", async () => {
  const echo = await sandbox.start(["cat"]);
  await echo.write("one\n");
  assert.equal((await echo.read()).data.toString(), "one\n");
  await echo.closeStdin();
  assert.equal((await echo.wait()).exitCode, 0);
  const trapped = await sandbox.start('trap "exit 7" USR1; echo ready; while :; do sleep 0.05; done');
  assert.equal((await trapped.read()).data.toString(), "ready\n");
  await trapped.signal("USR1");
  assert.equal((await trapped.wait()).exitCode, 7);
  const closed = await sandbox.start("echo $$ >/tmp/pid; echo ready; sleep 100");
  await closed.read();
  closed.close();
  assert.equal((await sandbox.run("for i in {1..200}; do kill -0 $(</tmp/pid) 2>&- || exit 0; sleep 0.05; done; exit 1")).exitCode, 0);
});

test("a terminal has a size, and its keys are signals", async () => {
  const shell = await sandbox.start(["bash", "--norc", "-i"], { pty: { columns: 91, rows: 31 }, env: { TERM: "dumb", PS1: "> " } });
  let shown = "";
  const until = async (wanted) => {
    while (!shown.includes(wanted)) {
      const output = await shell.read();
      assert.ok(output !== null, shown);
      assert.equal(output.stream, "terminal");
      shown += output.data;
    }
    shown = "";
  };
  // A shell at its prompt may write back the size that it has read a moment before.
  await shell.write("stty size; read\r");
  await until("31 91\r\n");
  await shell.resize({ columns: 92, rows: 32 });
  await shell.write("\r");
  // A job that says so itself is in front. Keys right behind ^C are dropped, as by Linux's terminals.
  await shell.write("stty size; (echo be''gun; exec sleep 100)\r");
  await until("begun");
  await shell.write("\x03");
  await until("> ");
  await shell.write("echo st''atus $?; exit 6\r");
  await until("status 130");
  assert.equal((await shell.wait()).exitCode, 6);
});

test("files are read, written, listed and removed", async () => {
  const { files } = sandbox;
  const big = Buffer.alloc(3_500_000, "x");
  await files.write("/tmp/d/big", big, { parents: true, mode: 0o640 });
  assert.ok((await files.read("/tmp/d/big")).equals(big));
  assert.equal((await files.read("/tmp/d/big", { start: 10, count: 5 })).length, 5);
  await files.append("/tmp/d/text", "one ");
  await files.append("/tmp/d/text", "two \u00e4");
  assert.equal(await files.readText("/tmp/d/text"), "one two \u00e4");
  await files.symlink("/tmp/d/link", "text");
  const about = await files.stat("/tmp/d/link", { follow: false });
  assert.deepEqual([about.type, about.target], ["link", "text"]);
  const found = await files.stat("/tmp/d/big");
  assert.deepEqual([found.size, found.mode, found.mtime.getFullYear() > 2000], [big.length, 0o640, true]);
  await files.copy("/tmp/d/text", "/tmp/d/copy");
  await files.rename("/tmp/d/copy", "/tmp/d/moved");
  await files.mkdir("/tmp/d/e/f", { parents: true });
  const names = (await files.list("/tmp/d", { recursive: true })).map(({ name }) => name).sort();
  assert.deepEqual(names, ["big", "e", "e/f", "link", "moved", "text"]);
  await assert.rejects(files.remove("/tmp/d"), code("ENOTEMPTY"));
  await files.remove("/tmp/d", { recursive: true });
  assert.equal(await files.exists("/tmp/d"), false);
  await assert.rejects(files.read("/tmp/d"), code("ENOENT"));
  await assert.rejects(files.write("old", "x", { create: true }), code("EEXIST"));
  await assert.rejects(files.write("/bin/x", "x"), code("EROFS"));
  const many = Array.from({ length: 40 }, (_, at) => files.write(`/tmp/n${at}`, String(at)).then(() => files.readText(`/tmp/n${at}`)));
  assert.deepEqual(await Promise.all(many), many.map((_, at) => String(at)));
});

test("changes of an overlay are shown, named, taken back and applied", async () => {
  await sandbox.files.write("new", "new\n");
  await sandbox.snapshot("first");
  await sandbox.run("rm old");
  const changes = (await sandbox.diff()).map(({ kind, path }) => `${kind} ${path}`).sort();
  assert.equal(changes.length, 2);
  await sandbox.rollback("first");
  assert.equal(await sandbox.files.readText("old"), "old\n");
  const done = await sandbox.apply();
  assert.deepEqual([done.finished, done.refused, done.applied.map(({ path }) => path)], [true, [], ["new"]]);
  assert.equal(readFileSync(join(folder, "new"), "utf8"), "new\n");
  await sandbox.files.write("other", "x");
  assert.deepEqual((await sandbox.discard()).map(({ path }) => path), ["other"]);
  await assert.rejects(sandbox.rollback("never"), (error) => error instanceof RequestError && /never/.test(error.message));
});

test("changes of a session that runs need no image", async () => {
  await sandbox.files.write("seen", "x");
  const before = process.env.LIND_ROOT;
  process.env.LIND_ROOT = "/nowhere";
  try {
    const other = await Sandbox.connect(await sandbox.open());
    assert.deepEqual((await other.diff()).map(({ path }) => path), ["seen"]);
    await other.close();
  } finally {
    if (before === undefined) delete process.env.LIND_ROOT;
    else process.env.LIND_ROOT = before;
  }
  await sandbox.discard();
});

test("rules change while it runs, and denials say what would allow a call", async () => {
  const result = await sandbox.run(": </dev/tcp/192.0.2.1/80");
  assert.deepEqual([result.denied, result.denials[0].hint], [1, "--allow 192.0.2.1:80"]);
  const last = (await sandbox.denials()).at(-1);
  assert.equal(last.arguments, "connect tcp 192.0.2.1:80");
  assert.deepEqual(await sandbox.denials({ since: last.id }), []);
  const rule = await sandbox.deny("read=/etc/passwd");
  assert.equal((await sandbox.run("read -r x </etc/passwd")).exitCode, 1);
  await sandbox.revoke(rule);
  assert.equal((await sandbox.run("[ ! -e /etc/passwd ] || read -r x </etc/passwd")).exitCode, 0);
  assert.ok((await sandbox.allow("example.org:443", { once: true })) > rule);
  await assert.rejects(sandbox.allow("no rule at all"), RequestError);
});

test("a session is connected to, and left or stopped", async () => {
  const own = new Sandbox();
  const name = await own.open();
  const other = await Sandbox.connect(name);
  assert.equal((await other.run("echo hi")).stdout, "hi\n");
  await other.close();
  assert.equal((await own.run("echo still")).stdout, "still\n");
  await (await Sandbox.connect(name)).stop();
  await assert.rejects(own.run("echo"), SandboxError);
  await own.close();
  await assert.rejects(own.run("echo"), SandboxError);
  await assert.rejects(Sandbox.connect(name), SandboxError);
});

test("mistakes in options are told", async () => {
  await assert.rejects(run("echo", { memory: "1X" }), (error) => error instanceof SandboxError && error.message.includes("1X"));
  await assert.rejects(run("echo", { volumes: { "/no/such": "rw" } }), (error) => error instanceof SandboxError && error.message.includes("/no/such"));
  assert.equal((await run("echo $A", { env: { A: "one" }, memory: "1G", cpu: 60, processes: 20 })).stdout, "one\n");
});

test("a session that dies is told", async () => {
  const own = new Sandbox();
  const name = await own.open();
  const process = await own.start("echo ready; sleep 100");
  await process.read();
  const stopped = (await Sandbox.connect(name)).stop();
  const end = await process.wait().catch((error) => error);
  assert.ok(end instanceof SandboxError || end.signal === 15, String(end));
  await stopped;
  await own.close();
});

test("lind-boot is looked for in three places", () => {
  const { LIND_BOOT, LIND_HOME, PATH } = process.env;
  const bin = join(folder, "home", "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "lind-boot"), "");
  try {
    process.env.LIND_BOOT = "/named/lind-boot";
    assert.equal(program(), "/named/lind-boot");
    process.env.LIND_BOOT = "";
    process.env.LIND_HOME = join(folder, "home");
    process.env.PATH = "";
    assert.equal(program(), join(bin, "lind-boot"));
    process.env.LIND_HOME = "";
    assert.throws(program, SandboxError);
    process.env.PATH = `/nowhere:${bin}`;
    assert.equal(program(), join(bin, "lind-boot"));
  } finally {
    for (const [name, value] of Object.entries({ LIND_BOOT, LIND_HOME, PATH })) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
});

test("the image of a wheel is unpacked once, where nobody else can change it", async () => {
  const names = ["LIND_BOOT", "LIND_HOME", "LIND_ROOT", "XDG_CACHE_HOME"];
  const before = names.map((name) => process.env[name]);
  const [home, cache] = [join(folder, "wheel"), join(folder, "cache")];
  for (const place of [join(home, "bin"), join(home, "images"), cache]) mkdirSync(place, { recursive: true });
  const unpacks = (script) => writeFileSync(join(home, "bin", "lind-boot"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  try {
    names.forEach((name) => delete process.env[name]);
    Object.assign(process.env, { LIND_HOME: home, XDG_CACHE_HOME: cache });
    unpacks("exit 1");
    assert.equal(await bundled(20), undefined);
    writeFileSync(join(home, "images", "base.id"), "one\n");
    await assert.rejects(bundled(20), (error) => error instanceof SandboxError && error.message.includes("base.tar.zst cannot be unpacked"));
    assert.deepEqual(readdirSync(join(cache, "lind-sandbox")), []);
    unpacks(`[ "$1 $2" = "unpack-image ${home}/images/base.tar.zst" ] && mkdir "$3/bin"`);
    const found = await Promise.all([bundled(20), bundled(20)]);
    assert.deepEqual(found, Array(2).fill(join(cache, "lind-sandbox", "base-one")));
    assert.ok(existsSync(join(found[0], "bin")));
    unpacks("exit 1");
    assert.equal(await bundled(20), found[0]);
    chmodSync(join(cache, "lind-sandbox"), 0o777);
    await assert.rejects(bundled(20), (error) => error instanceof SandboxError && error.message.includes("nobody else can change"));
  } finally {
    names.forEach((name, at) => (before[at] === undefined ? delete process.env[name] : (process.env[name] = before[at])));
  }
});
