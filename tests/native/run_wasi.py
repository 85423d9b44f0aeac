"""Run a program of WASI: run_wasi.py PROGRAM [ARGUMENT ...]."""

import sys

from wasmtime import Engine, ExitTrap, Linker, Module, Store, WasiConfig

engine = Engine()
config = WasiConfig()
config.argv = sys.argv[1:]
config.inherit_stdout()
config.inherit_stderr()
store = Store(engine)
store.set_wasi(config)
linker = Linker(engine)
linker.define_wasi()
program = linker.instantiate(store, Module.from_file(engine, sys.argv[1]))
try:
    program.exports(store)["_start"](store)
except ExitTrap as end:
    sys.exit(end.code)
