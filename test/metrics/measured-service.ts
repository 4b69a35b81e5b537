/** The authenticated service over real HTTP, with its metrics on a port of their own. */
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { PUBLIC_URL, startService, type Json, type ServiceOptions } from '../contract/authenticated-service.js'
import { readScrape } from './scrape.js'

const HTTP = { host: '127.0.0.1', port: 0, publicUrl: PUBLIC_URL, allowedHosts: [], maxInFlight: 256, metricsPort: 0 }

export async function startMeasured(t: Test, { config, ...options }: ServiceOptions = {}) {
  const service = await startService(t, { ...options, config: { http: HTTP, ...config } as never })
  const { app } = service
  await app.listen({ host: '127.0.0.1', port: 0 })
  await app.metricsServer!.listen({ host: '127.0.0.1', port: 0 })
  const urlOf = ({ server }: { server: { address(): unknown } }) =>
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const url = urlOf(app)
  const metricsUrl = `${urlOf(app.metricsServer!)}/metrics`
  /** What a tool answers, or its error. */
  const call = async (token: string, name: string, args: object = {}, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    })
    const body: Json = await answer.json()
    return body.result?.structuredContent ?? JSON.parse(body.result?.content[0].text ?? JSON.stringify(body))
  }
  const scrape = async () => readScrape(await (await fetch(metricsUrl)).text())
  return { ...service, url, metricsUrl, call, scrape }
}
