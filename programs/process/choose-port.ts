import { createServer, type AddressInfo } from 'node:net'

/** Returns the port `wanted` if it is free on loopback, otherwise any free port. */
export async function choosePort(wanted: number): Promise<number> {
  for (const port of [wanted, 0]) {
    const server = createServer()
    const listening = new Promise<boolean>((resolve) => {
      server.once('listening', () => resolve(true))
      server.once('error', () => resolve(false))
    })
    server.listen(port, '127.0.0.1')
    if (!(await listening)) continue
    const chosen = (server.address() as AddressInfo).port
    await new Promise((resolve) => server.close(resolve))
    return chosen
  }
  throw new Error('no free port on 127.0.0.1')
}
