/** The MCP Inspector's command line: a client that is not ours. */
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

interface Test {
  teardown(fn: () => unknown): void
}

/**
 * The two programs of the Inspector: `direct` takes a command or an address, `whole` also `--cli`, `--config` and what else people write
 * after `npx @modelcontextprotocol/inspector`.
 *
 * Version 2 needs a later Node.js than we promise. Version 1 looks for its package.json where the whole Inspector has one, so it gets a
 * place with one there; below node_modules, for the packages that it imports.
 */
export function placeInspector(t: Test): { direct: string; whole: string } {
  const place = fileURLToPath(new URL(`./node_modules/.cache/inspector-${process.pid}/`, import.meta.url))
  cpSync(new URL('./node_modules/@modelcontextprotocol/inspector-cli/', import.meta.url), `${place}cli`, {
    recursive: true,
  })
  writeFileSync(`${place}package.json`, JSON.stringify({ name: 'inspector', version: '1.0.3', type: 'module' }))
  t.teardown(() => rmSync(place, { recursive: true, force: true }))
  return { direct: `${place}cli/build/index.js`, whole: `${place}cli/build/cli.js` }
}
