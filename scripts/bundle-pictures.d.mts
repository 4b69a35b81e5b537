export declare function bundlePictures(root: string): Promise<void>
