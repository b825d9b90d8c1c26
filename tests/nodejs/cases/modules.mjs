// Modules of both kinds, and node_modules.
import fs, { readFileSync } from 'node:fs';
import { createRequire } from 'module';
import counter, { bump, count } from './modules/counter.mjs';
import { named, default as whole } from './modules/old.cjs';
import data from './modules/data.json' with { type: 'json' };

bump();
console.log(count, counter, named, Object.keys(whole), data, fs.readFileSync === readFileSync);
const require = createRequire(import.meta.url);
console.log(require('./modules/old.cjs') === whole, require('./modules/data.json'), require.resolve('path'));
console.log((await import('./modules/counter.mjs')).count, import.meta.url.split('/').pop(), import.meta.filename.split('/').pop());
for (const name of ['./modules/none.mjs', 'no-such-package'])
    await import(name).catch(error => console.log(error.code));
try {
    require('./modules/broken.cjs');
} catch (error) {
    console.log(error.name);
}
