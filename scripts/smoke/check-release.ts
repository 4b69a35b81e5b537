import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { hashOf } from '../release/files.js'
import { run } from '../run-command.js'

interface LockFile {
  packages: Record<string, { version: string; dev?: boolean; devOptional?: boolean }>
}

/** Checks that every file of a release has a correct checksum, and that there are no other checksums. Throws Error. */
export function checkSums(folder: string): void {
  const named = run('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], folder)
  const sums = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trimEnd().split('\n')
  const files = readdirSync(folder).filter((file) => file !== 'SHA256SUMS')
  const without = files.filter((file) => !sums.includes(`${hashOf(join(folder, file))}  ${file}`))
  if (named !== '' || without.length > 0 || sums.length !== files.length)
    throw new Error(`${named} without a checksum: ${without.join(', ')}`)
}

/**
 * Checks that the SBOM lists every package that the project's package needs to run, and none that is only for
 * development. Throws Error.
 */
export function checkSbom(root: string, path: string): void {
  const bom = JSON.parse(readFileSync(path, 'utf8')) as {
    bomFormat: string
    metadata: { component: { name: string; version: string } }
    components: { purl: string }[]
  }
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as LockFile
  const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, string>
  const { component } = bom.metadata
  if (bom.bomFormat !== 'CycloneDX' || component.name !== name || component.version !== version)
    throw new Error(`it is of ${component.name} ${component.version}`)
  const listed = new Set(bom.components.map(({ purl }) => decodeURIComponent(purl)))
  const purlOf = ([path, { version }]: [string, { version: string }]) =>
    `pkg:npm/${path.split('node_modules/').at(-1)}@${version}`
  const entries = Object.entries(packages).filter(([path]) => path !== '')
  const needed = new Set(entries.filter(([, { dev, devOptional }]) => !dev && !devOptional).map(purlOf))
  const development = entries.filter(([, { dev }]) => dev).map(purlOf)
  const missing = [...needed].filter((purl) => !listed.has(purl))
  const surplus = development.filter((purl) => listed.has(purl) && !needed.has(purl))
  if (missing.length + surplus.length > 0)
    throw new Error(`missing: ${missing.join(', ')}; surplus: ${surplus.join(', ')}`)
}

/** Checks that a build from the context of the image has the same content as the package. Throws Error. */
export function checkContext(root: string, context: string, folder: string): void {
  mkdirSync(folder)
  run('tar', ['-xzf', context, '-C', folder], folder)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  run(process.execPath, ['scripts/build.mjs', '--quiet'], folder)
  const door = (place: string) => readFileSync(join(place, 'dist/http.js'), 'utf8')
  if (door(folder) !== door(root)) throw new Error(`built from the context: ${door(folder)}; here: ${door(root)}`)
}
