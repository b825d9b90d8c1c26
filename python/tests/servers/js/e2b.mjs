// The stock JavaScript client of E2B, pointed at a server by its environment variables. test_e2b_js.py runs this.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { CommandExitError, FileNotFoundError, FileType, NotFoundError, Sandbox, TimeoutError } from 'e2b'

let sandbox
before(async () => { sandbox = await Sandbox.create({ timeoutMs: 120_000, metadata: { test: 'js' }, envs: { FOO: 'bar' } }) })
after(async () => { assert.equal(await sandbox.kill(), true) })

test('commands', async () => {
  const heard = []
  const result = await sandbox.commands.run('echo $FOO; echo err >&2', { onStdout: text => heard.push(text) })
  assert.deepEqual([result.exitCode, result.stdout, result.stderr, heard.join('')], [0, 'bar\n', 'err\n', 'bar\n'])
  await assert.rejects(sandbox.commands.run('echo before; exit 3'), why => why instanceof CommandExitError && why.exitCode === 3 && why.stdout === 'before\n')
  await assert.rejects(sandbox.commands.run('sleep 100', { timeoutMs: 1000 }), TimeoutError)
})

test('input, lists and signals', async () => {
  const cat = await sandbox.commands.run('cat', { background: true, stdin: true })
  assert.ok((await sandbox.commands.list()).some(info => info.pid === cat.pid))
  await cat.sendStdin('héllo\n')
  await cat.closeStdin()
  assert.equal((await cat.wait()).stdout, 'héllo\n')
  const sleeper = await sandbox.commands.run('sleep 100', { background: true })
  const again = await sandbox.commands.connect(sleeper.pid)
  assert.equal(await sleeper.kill(), true)
  await assert.rejects(again.wait(), CommandExitError)
  assert.equal(await sandbox.commands.kill(999999), false)
  await assert.rejects(sandbox.commands.connect(999999), NotFoundError)
})

test('a terminal', async () => {
  let shown = ''
  const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: data => { shown += Buffer.from(data) }, timeoutMs: 60_000 })
  // A shell at its prompt may write back the size that it has read a moment before.
  await sandbox.pty.sendInput(terminal.pid, Buffer.from("echo rea''dy; read; stty size; exit 0\n"))
  while (!shown.includes('ready\r\n')) await new Promise(resolve => setTimeout(resolve, 20))
  await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 30 })
  await sandbox.pty.sendInput(terminal.pid, Buffer.from('\n'))
  assert.equal((await terminal.wait()).exitCode, 0)
  assert.match(shown, /30 100/)
})

test('files', async () => {
  const { files } = sandbox
  assert.equal((await files.write('deep/file', 'tëxt')).path, '/home/user/deep/file')
  assert.equal(await files.read('deep/file'), 'tëxt')
  await files.write([{ path: 'one', data: '1' }, { path: 'two', data: new Uint8Array([0, 255]).buffer }])
  assert.deepEqual([...await files.read('two', { format: 'bytes' })], [0, 255])
  assert.deepEqual((await files.list('.')).filter(entry => entry.type === FileType.FILE && !entry.name.startsWith('.')).map(entry => entry.name), ['one', 'two'])
  assert.equal((await files.rename('one', 'three')).path, '/home/user/three')
  assert.equal((await files.getInfo('three')).size, 1)
  assert.deepEqual([await files.makeDir('new'), await files.makeDir('new'), await files.exists('one')], [true, false, false])
  await files.remove('new')
  await assert.rejects(files.read('not-there'), FileNotFoundError)
})

test('a watch', async () => {
  await sandbox.files.makeDir('watched')
  const names = new Set()
  const seen = new Promise(done => sandbox.files.watchDir('watched', event => { names.add(`${event.type} ${event.name}`); if (event.type === 'write') done() })
    .then(watch => { after(() => watch.stop()); return sandbox.files.write('watched/file', 'x') }))
  await seen
  assert.ok(names.has('create file') && names.has('write file'))
})

test('sandboxes', async () => {
  const pages = Sandbox.list({ query: { metadata: { test: 'js' } } })
  assert.deepEqual((await pages.nextItems()).map(info => info.sandboxId), [sandbox.sandboxId])
  assert.equal((await sandbox.getInfo()).state, 'running')
  await sandbox.setTimeout(200_000)
  const other = await Sandbox.connect(sandbox.sandboxId)
  assert.equal(await other.files.read('three'), '1')
  assert.equal(await sandbox.pause(), true)
  assert.equal(await sandbox.isRunning(), false)
  await sandbox.connect()
  assert.equal(await sandbox.isRunning(), true)
  assert.equal((await sandbox.getMetrics()).length, 1)
})

test('forks and snapshots', async () => {
  await sandbox.files.write('forked', '1')
  const [fork] = await sandbox.fork({ timeoutMs: 60_000 })
  assert.ok(fork instanceof Sandbox, `${fork}`)
  await fork.files.write('forked', '2')
  assert.deepEqual([await sandbox.files.read('forked'), await fork.files.read('forked')], ['1', '2'])
  const snapshot = await fork.createSnapshot({ name: 'of-js' })
  assert.equal(await fork.kill(), true)
  const again = await Sandbox.create(snapshot.snapshotId, { timeoutMs: 60_000 })
  assert.equal(await again.files.read('forked'), '2')
  assert.equal(await again.kill(), true)
  assert.deepEqual((await Sandbox.listSnapshots().nextItems()).map(one => one.snapshotId), ['of-js:default'])
  assert.deepEqual([await Sandbox.deleteSnapshot('of-js'), await Sandbox.deleteSnapshot('of-js')], [true, false])
})
