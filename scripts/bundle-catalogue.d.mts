import type { Plugin } from 'esbuild'
export declare function bundleCatalogue(root: string, folder: string): Promise<Plugin>
