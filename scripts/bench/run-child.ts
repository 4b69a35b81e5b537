import { execFile } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join, posix } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'

/** The path of the client in the current build. The measurement uses the shipped code instead of the sources. */
const CLIENT = leadOn('dist/pce-client/index.js')
// The folder of the bundles. It is inside the package, so that bundles find the modules that they import.
const BUNDLES = join('node_modules', '.cache', `svc-mcp-bench-${process.pid}`)

/** Finds the module that an entry file re-exports (scripts/build.mjs). */
function leadOn(path: string): string {
  const target = /^export \* from '(.+)'$/m.exec(readFileSync(path, 'utf8'))?.[1]
  if (target === undefined) throw new Error(`${path} leads nowhere: npm run build`)
  return posix.join(posix.dirname(path), target)
}

/** Runs one measurement of the client in a new process and parses the JSON that it prints. */
export const runChild = <T>(script: string, before: string[], port: string): Promise<T> =>
  run(`scripts/bench/${script}`, [...before, CLIENT, port])

let calling: Promise<string> | undefined

/** Calls one tool in a new process (call-tool.ts) and parses the figures that it prints. */
export const callTool = async <T>(name: string, args: object, port: string): Promise<T> =>
  run(await (calling ??= bundle('call-tool')), [name, JSON.stringify(args), port])

async function run<T>(program: string, args: string[]): Promise<T> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args])
  return JSON.parse(stdout) as T
}

/** Bundles a measurement with the sources that it uses, as the build bundles the programs. */
async function bundle(name: string): Promise<string> {
  process.once('exit', () => rmSync(BUNDLES, { recursive: true, force: true }))
  await build({
    entryPoints: [`scripts/bench/${name}.ts`],
    outdir: BUNDLES,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    logLevel: 'warning',
  })
  return join(BUNDLES, `${name}.js`)
}
