import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'

/** The maximum size of the package, in bytes. */
const LARGEST = 1_500_000
/** The ways in which a project may resolve the package's types: as Node.js does, and as bundlers do. */
const RESOLUTIONS = { nodenext: { module: 'nodenext' }, bundler: { module: 'esnext', moduleResolution: 'bundler' } }
/** The source of a project that imports everything that package.json exports, with its types. */
const consumerOf = (name: string) => `
import { createPceClient, type PceClientOptions } from '${name}/pce-client'
const options: PceClientOptions = { url: 'https://pce.example.com', port: 8443 }
console.log(typeof createPceClient(options).get)
// @ts-expect-error so that types that are not found, and pass for anything, are noticed
const wrong: PceClientOptions = { url: 1 }
void wrong
`
const EXPORTED = ['./pce-client']

/** Checks the package with publint and "Are the types wrong?", and checks its size. Throws Error with all findings. */
export async function judgePackage(root: string, tarball: string): Promise<void> {
  const bytes = readFileSync(tarball)
  const content = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)
  const { messages, pkg } = await publint({ pack: { tarball: content }, strict: true })
  const found = messages.map((message) => formatMessage(message, pkg) ?? message.code)
  const { size } = statSync(tarball)
  if (size > LARGEST) found.push(`it has ${size} bytes, and at most ${LARGEST} are allowed`)
  // The package has no CommonJS version, because Node.js 20.19 can require ES modules.
  const attw = [
    join(root, 'scripts/smoke/node_modules/@arethetypeswrong/cli/dist/index.js'),
    tarball,
    '--profile',
    'esm-only',
  ]
  const { status, stdout } = spawnSync(process.execPath, [...attw, '--format', 'ascii', '--no-emoji', '--no-color'], {
    encoding: 'utf8',
  })
  if (status !== 0) found.push(stdout)
  if (found.length > 0) throw new Error(found.join('\n'))
}

/**
 * Compiles and runs the consumer in a project that has installed the package. Throws Error with the output of the
 * compiler or the program.
 */
export function judgeTypes(root: string, project: string): void {
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { name: string; exports: object }
  if (Object.keys(own.exports).join() !== EXPORTED.join())
    throw new Error('the consumer does not import all that is exported')
  for (const [name, resolution] of Object.entries(RESOLUTIONS)) {
    const folder = join(project, name)
    mkdirSync(folder)
    const compilerOptions = {
      ...resolution,
      target: 'es2023',
      lib: ['es2023', 'dom'],
      strict: true,
      skipLibCheck: true,
      types: [],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }))
    writeFileSync(join(folder, 'consumer.ts'), consumerOf(own.name))
    for (const args of [[join(root, 'node_modules/typescript/bin/tsc'), '-p', folder], [join(folder, 'consumer.js')]]) {
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
      if (status !== 0) throw new Error(`${name}: ${stdout}${stderr}`)
    }
  }
}
