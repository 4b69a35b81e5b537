/** Rendered manifests held against the types and JSON schemas of their APIs, as the packages kubernetes-models have them. */
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'
import { parseAllDocuments } from 'yaml'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** test/deploy/package.json pins what is installed here. */
const HERE = fileURLToPath(new URL('.', import.meta.url))

export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string }
  spec?: Record<string, unknown>
  data?: Record<string, string>
}

const PACKAGES: Record<string, string> = {
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator/',
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api/',
  'external-secrets.io': '@kubernetes-models/external-secrets/',
}
/** These packages do not have it. */
export const UNKNOWN_KINDS = ['BackendTLSPolicy']

/** Throws for text that is no YAML. */
export const parseManifests = (text: string): Manifest[] =>
  parseAllDocuments(text).map((document) => {
    if (document.errors[0]) throw document.errors[0]
    return document.toJS() as Manifest
  })

/** As the package knows it: ExternalSecret is the same in v1 as in v1beta1, but not there yet. */
function known(manifest: Manifest): Manifest {
  return manifest.apiVersion === 'external-secrets.io/v1'
    ? { ...manifest, apiVersion: 'external-secrets.io/v1beta1' }
    : manifest
}

function moduleOf({ apiVersion, kind }: Manifest): string {
  return `${PACKAGES[apiVersion.split('/')[0]!] ?? 'kubernetes-models/'}${apiVersion}/${kind}`
}

/** What the schemas say against these manifests, and against fields that the APIs do not have. */
export async function faultsOf(manifests: readonly Manifest[]): Promise<string[]> {
  const checked = manifests.filter(({ kind }) => !UNKNOWN_KINDS.includes(kind)).map(known)
  const faults: string[] = []
  for (const manifest of checked) {
    const models = (await import(pathToFileURL(join(HERE, 'node_modules', `${moduleOf(manifest)}.js`)).href)) as Record<
      string,
      new (data: unknown) => { validate(): void }
    >
    try {
      new models[manifest.kind]!(manifest).validate()
    } catch (error) {
      faults.push(`${manifest.kind}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return [...faults, ...unknownFields(checked)]
}

/** The schemas let fields pass that nobody knows; the types do not. */
function unknownFields(manifests: readonly Manifest[]): string[] {
  const name = join(HERE, 'manifests.of-this-test.ts')
  const text = manifests
    .map((one, at) => {
      const from = `import type { I${one.kind} as T${at} } from '${moduleOf(one)}'`
      return `${from}\nexport const m${at}: T${at} = ${JSON.stringify(one)}`
    })
    .join('\n')
  const options: ts.CompilerOptions = {
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    target: ts.ScriptTarget.ES2022,
    types: [],
  }
  const host = ts.createCompilerHost(options)
  const getSourceFile = host.getSourceFile.bind(host)
  const fileExists = host.fileExists.bind(host)
  host.getSourceFile = (path, version) =>
    path === name ? ts.createSourceFile(path, text, version) : getSourceFile(path, version)
  host.fileExists = (path) => path === name || fileExists(path)
  const program = ts.createProgram([name], options, host)
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))
}
