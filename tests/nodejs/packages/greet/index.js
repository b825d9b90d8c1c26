module.exports = name => require('shout')(`hello ${name}`);
