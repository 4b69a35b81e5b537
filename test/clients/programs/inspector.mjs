/** The command line of the MCP Inspector, which is a process for each request. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { answerOf, textOf } from './use-client.mjs'

const INSPECTOR = fileURLToPath(new URL('../node_modules/.bin/mcp-inspector', import.meta.url))

export function connect({ url, headers, command, args, env }) {
  const target =
    url === undefined
      ? [command, ...args, ...Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])]
      : [
          url,
          '--transport',
          'http',
          ...Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
        ]
  const ask = async (method, ...options) => {
    const words = [INSPECTOR, '--cli', ...target, '--format', 'json', '--quiet', '--method', method, ...options]
    const { stdout } = await promisify(execFile)(process.execPath, words).catch((failure) => {
      // A refused call is a failure of the command, whose output has the answer all the same.
      if (failure.stdout === '') throw new Error(failure.stderr)
      return failure
    })
    return JSON.parse(stdout).result
  }
  return {
    listTools: async () => (await ask('tools/list')).tools.map(({ name }) => name),
    readResource: async (uri) => textOf((await ask('resources/read', '--uri', uri)).contents),
    call: async (name, values) =>
      answerOf(await ask('tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(values))),
    close: () => undefined,
  }
}
