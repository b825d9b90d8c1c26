exports.named = 'by name';
exports.file = __filename.split('/').pop();
exports.again = () => require('./old.cjs');
