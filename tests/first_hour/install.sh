# Install the library and check it; where it is installed already, as in the suite, only the check runs.
command -v dualfield || pip install .
dualfield doctor > doctor.txt
# Checks
grep -q "self check *ok" doctor.txt
