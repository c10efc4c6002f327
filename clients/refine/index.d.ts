/**
 * @param {string} url @param {import('diptych-rest').Options} [options]
 * @returns {{ dataProvider: Required<Omit<import('@refinedev/core').DataProvider, 'custom'>>, liveProvider: import('@refinedev/core').LiveProvider }}
 */
export function diptych(url: string, options?: import("diptych-rest").Options): {
    dataProvider: Required<Omit<import("@refinedev/core").DataProvider, "custom">>;
    liveProvider: import("@refinedev/core").LiveProvider;
};
export type CrudFilter = import("@refinedev/core").CrudFilter;
