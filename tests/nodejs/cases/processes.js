// child_process: shells, pipes, statuses, signals, messages.
const { exec, execFileSync, execSync, fork, spawn, spawnSync } = require('child_process');
const { once } = require('events');

if (process.argv[2] === 'child') {
    process.on('message', message => {
        process.send({ doubled: message.n * 2 });
        process.disconnect();
    });
} else {
    console.log(execSync('echo from a shell').toString(), execFileSync('cat', { input: 'input' }).toString());
    const { status, stdout, stderr, error } = spawnSync('sh', ['-c', 'echo out; echo err >&2; exit 3']);
    console.log(status, String(stdout), String(stderr), error);
    console.log(spawnSync('no-such-program').error.code, spawnSync('sh', ['-c', 'kill -9 $$']).signal);
    console.log(spawnSync('sleep', ['60'], { timeout: 50 }).error.code);
    for (const set of [() => process.setuid('no-such-user'), () => process.setgroups([0, 'no-such-group'])])
        try {
            set();
        } catch (error) {
            console.log(error.code, error.message);
        }
    (async () => {
        const cat = spawn('cat', { stdio: ['pipe', 'pipe', 'inherit'] });
        cat.stdin.end('through a pipe');
        let text = '';
        for await (const chunk of cat.stdout) text += chunk;
        console.log(text);
        const sleeper = spawn('sleep', ['60']);
        sleeper.kill();
        console.log(await once(sleeper, 'exit'));
        const [failed] = await once(spawn('no-such-program'), 'error');
        console.log(failed.code, failed.syscall);
        await new Promise(done => exec('echo $ANSWER; exit 5', { env: { ...process.env, ANSWER: '42' } }, (e, out) => {
            console.log(e.code, out);
            done();
        }));
        const child = fork(__filename, ['child']);
        child.send({ n: 21 });
        console.log(...await once(child, 'message'), await once(child, 'exit'));
    })();
}
