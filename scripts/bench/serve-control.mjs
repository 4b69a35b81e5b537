// The control of the crowd's probes: a server that only answers /healthz, in a process that does nothing else.
import { createServer } from 'node:http'

const server = createServer((_request, response) => response.end('{"status":"ok"}'))
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
