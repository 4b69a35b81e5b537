/** The bridge mcp-remote: a client of stdio, here the SDK's, reaches a server of HTTP through it. */
import { fileURLToPath } from 'node:url'
import { connect as connectStdio } from './sdk.mjs'

const BRIDGE = fileURLToPath(new URL('../node_modules/mcp-remote/dist/proxy.js', import.meta.url))

export function connect({ url, headers }) {
  const named = Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}:${value}`])
  return connectStdio({
    command: process.execPath,
    args: [BRIDGE, url, '--transport', 'http-only', ...named],
  })
}
