import { execFile } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join, posix } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'

/** What is shipped, and not its sources through a compiler: the client of the current build, with all of that build beside it. */
const CLIENT = leadOn('dist/pce-client/index.js')
// Inside the package, so that a bundle finds its external modules.
const BUNDLES = join('node_modules', '.cache', `svc-mcp-bench-${process.pid}`)

/** The module that this one leads to (scripts/build.mjs). */
function leadOn(path: string): string {
  const target = /^export \* from '(.+)'$/m.exec(readFileSync(path, 'utf8'))?.[1]
  if (target === undefined) throw new Error(`${path} leads nowhere: npm run build`)
  return posix.join(posix.dirname(path), target)
}

/** Runs one measurement of the client in a fresh process and reads the JSON it prints. */
export const runChild = <T>(script: string, before: string[], port: string): Promise<T> =>
  run(`scripts/bench/${script}`, [...before, CLIENT, port])

let calling: Promise<string> | undefined

/** Calls one tool in a fresh process (call-tool.ts) and reads the figures it prints. */
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
