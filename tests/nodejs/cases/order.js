// The order of ticks, microtasks, timers, immediates, and the end.
process.on('exit', code => console.log('exit', code, process.exitCode));
setTimeout(() => {
    console.log('timer');
    process.nextTick(() => console.log('tick in timer'));
    Promise.resolve().then(() => console.log('microtask in timer'));
    setImmediate(async () => {
        console.log('immediate');
        for await (const n of require('timers/promises').setInterval(5, 7)) {
            console.log('interval', n);
            break;
        }
        process.exitCode = 3;
    });
}, 1);
process.nextTick(() => console.log('tick'));
Promise.resolve().then(() => console.log('microtask')).then(() => console.log('second microtask'));
queueMicrotask(() => console.log('queued'));
process.on('unhandledRejection', reason => console.log('rejected', reason.message));
Promise.reject(new Error('nobody'));
console.log('script', process.argv.slice(2), typeof process.hrtime.bigint(), process.platform);
