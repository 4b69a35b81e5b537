// `npm run build`: compiles what is shipped into a fresh dist/, bundles the stdio program, makes the programs executable.
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const { bin, dependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))

rmSync(`${root}dist`, { recursive: true, force: true })
const tsc = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json']
const { status } = spawnSync(process.execPath, tsc, { cwd: root, stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)

// Data that the programs read when they first need it.
const DATA = ['domain/traffic/providers/provider-ranges.json']
for (const file of DATA) copyFileSync(`${root}${file}`, `${root}dist/${file}`)

// A person waits for the stdio program at every start of their client, and most of that wait is Node finding and reading some
// 600 small modules. One file takes about a third of the time (`npm run bench`). What is only needed later stays apart. The same
// for what a worker thread loads, which somebody waits for too.
const LOADED_LATER = ['got', 'hpagent', 'piscina']
for (const name of LOADED_LATER) if (!(name in dependencies)) throw new Error(`${name} is not a dependency any more`)
for (const program of ['stdio', 'worker']) {
  await build({
    absWorkingDir: root,
    entryPoints: [`${program}.ts`],
    outdir: 'dist',
    chunkNames: `${program}/[name]-[hash]`,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    external: LOADED_LATER,
    // CommonJS packages inside an ES module still ask for Node's own modules by require.
    banner: { js: "import { createRequire } from 'node:module';const require = createRequire(import.meta.url);" },
    logLevel: 'warning',
  })
}

for (const program of Object.values(bin)) chmodSync(`${root}${program}`, 0o755)
