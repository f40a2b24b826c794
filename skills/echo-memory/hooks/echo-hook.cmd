: << 'BATCH_PART'
@echo off
rem One file for every shell: cmd.exe takes the first line as a label and runs this part, a POSIX shell skips it.
setlocal
set "ECHO_SCRIPT=%~dp0..\scripts\echo.py"
for %%P in (python3 python "py -3") do (
    %%~P -c "import sys; sys.exit(sys.version_info < (3, 9))" >nul 2>nul && (
        if "%~1"=="stop" (
            %%~P "%ECHO_SCRIPT%" session-end --check
        ) else (
            %%~P "%ECHO_SCRIPT%" load || echo ECHO: the memory could not be loaded; go on without it.
        )
        exit /b 0
    )
)
if not "%~1"=="stop" echo ECHO: there is no Python 3.9 or newer; the memory is not loaded.
exit /b 0
BATCH_PART
# Finds a Python and runs one verb; a hook never fails a session. Argument: start (default) or stop.
script="$(CDPATH= cd -- "$(dirname -- "$0")/../scripts" && pwd)/echo.py"
for python in python3 python "py -3"; do
    # "py -3" is two words on purpose.
    if $python -c 'import sys; sys.exit(sys.version_info < (3, 9))' >/dev/null 2>&1; then
        if [ "${1:-start}" = stop ]; then
            $python "$script" session-end --check
        else
            $python "$script" load || echo "ECHO: the memory could not be loaded; go on without it."
        fi
        exit 0
    fi
done
[ "${1:-start}" = stop ] || echo "ECHO: there is no Python 3.9 or newer; the memory is not loaded."
exit 0
