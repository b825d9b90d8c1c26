// net and http, with themselves.
const net = require('net');
const http = require('http');
const { once } = require('events');

(async () => {
    const echo = net.createServer(socket => socket.pipe(socket)).listen(0, '127.0.0.1');
    await once(echo, 'listening');
    const client = net.connect(echo.address().port, '127.0.0.1');
    client.end('there and back');
    let text = '';
    for await (const chunk of client) text += chunk;
    console.log(text);
    echo.close();

    const server = http.createServer(async (request, response) => {
        let body = '';
        for await (const chunk of request) body += chunk;
        response.writeHead(request.url === '/none' ? 404 : 200, { 'Content-Type': 'text/plain' });
        response.end(`${request.method} ${request.url} ${body} ${request.headers.host !== undefined}`);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    for (const [path, body] of [['/', ''], ['/none', 'x'.repeat(10)], ['/big?q=1', 'y'.repeat(100000)]]) {
        const request = http.request({ port, host: '127.0.0.1', path, method: body ? 'POST' : 'GET' });
        request.end(body);
        const [response] = await once(request, 'response');
        let answer = '';
        for await (const chunk of response) answer += chunk;
        console.log(response.statusCode, response.headers['content-type'], answer.length, answer.slice(0, 20));
    }
    server.close();
    net.connect(port, '127.0.0.1').on('error', error => console.log(error.code)).on('connect', function () {
        console.log('still there');
        this.end();
    });
})();
